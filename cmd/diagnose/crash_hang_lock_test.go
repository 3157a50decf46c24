package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// keptLocks has threads that keep a lock in one of several ways, by its first argument. In the way "given" they give it back.
const keptLocks = `
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

struct ledger {
	std::mutex lock;
	pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
	std::condition_variable changed;
	int entries = 0;
	bool ready = false;
};
static ledger book;

static int total()
{
	std::lock_guard<std::mutex> reading(book.lock); // WAITS
	return book.entries;
}

static void throws()
{
	try {
		book.lock.lock(); // THROWS
		if (++book.entries > 0)
			throw std::runtime_error("full");
		book.lock.unlock();
	} catch (const std::exception &) {
	}
}

static void waits()
{
	std::unique_lock<std::mutex> holding(book.lock);
	while (!book.ready)
		book.changed.wait(holding); // AGAIN
	book.entries = total();
}

static void *leaves(void *)
{
	pthread_rwlock_wrlock(&book.table); // LEAVES
	if (++book.entries > 0)
		pthread_exit(nullptr);
	pthread_rwlock_unlock(&book.table);
	return nullptr;
}

static void gives()
{
	for (int i = 0; i < 3; i++) {
		std::lock_guard<std::mutex> holding(book.lock);
		book.entries++;
	}
	pause();
}

int main(int, char **argv)
{
	alarm(1);
	if (!strcmp(argv[1], "throws")) {
		std::thread(throws).join();
		return total();
	}
	if (!strcmp(argv[1], "waits")) {
		std::thread other(waits);
		{
			std::lock_guard<std::mutex> holding(book.lock);
			book.ready = true;
		}
		book.changed.notify_one();
		other.join();
	}
	if (!strcmp(argv[1], "leaves")) {
		pthread_t other;
		pthread_create(&other, nullptr, leaves, nullptr);
		pthread_join(other, nullptr);
		pthread_rwlock_rdlock(&book.table);
	}
	std::thread(gives).join();
}
`

// TestCrashOfAKeptLock: a lock that a thread waits for although it has it, or that its holder had when it ended, was taken
// at a place of the program.
func TestCrashOfAKeptLock(t *testing.T) {
	for _, compiler := range []string{"g++", "clang++"} {
		for _, level := range []string{"-O0", "-O2"} {
			exe := crashtest.Compile(t, crashtest.Program{Source: "ledger.cc", Text: keptLocks, Compiler: compiler, Flags: []string{"-std=c++17", level, "-pthread"}})
			for way, want := range map[string][]string{
				"throws": {"abandoned-lock", "took book.lock in throws (ledger.cc:" + lineWith(keptLocks, "// THROWS") + ") and ended without giving it back"},
				"leaves": {"abandoned-lock", "took book.table in leaves (ledger.cc:" + lineWith(keptLocks, "// LEAVES") + ") and ended without giving it back"},
				"given":  {"", ""},
				"waits":  {"self-deadlock", "took book.lock in waits (ledger.cc:"},
			} {
				t.Run(compiler+level+"/"+way, func(t *testing.T) { testKeptLock(t, want[0], want[1], exe, way) })
			}
		}
	}
}

func testKeptLock(t *testing.T, finding, cause string, program ...string) {
	var report struct {
		Case struct {
			Findings  []struct{ Kind string }
			Diagnosis struct {
				Causes []struct{ Kind, Summary, Proof string }
			}
		}
	}
	c := &report.Case
	const tries = 5 // on a busy machine a thread may not reach its wait within the second
	for range tries {
		o := diagnose(t, nil, "crash", "--time", "20s", "--format", "json", "--recording", recordedAt(t, program...))
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
			t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
		}
		if finding == "" || len(c.Diagnosis.Causes) > 0 {
			break
		}
	}
	switch {
	case finding == "":
		if len(c.Findings)+len(c.Diagnosis.Causes) > 0 {
			t.Errorf("findings %+v, causes %+v", c.Findings, c.Diagnosis.Causes)
		}
	case len(c.Findings) == 0 || c.Findings[0].Kind != finding:
		t.Errorf("findings %+v", c.Findings)
	case len(c.Diagnosis.Causes) != 1 || c.Diagnosis.Causes[0].Kind != "deadlock" || c.Diagnosis.Causes[0].Proof != "replayed" || !strings.Contains(c.Diagnosis.Causes[0].Summary, cause):
		t.Errorf("causes %+v, want %q", c.Diagnosis.Causes, cause)
	}
}

// lineWith is the number of the line of a text that has a mark.
func lineWith(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return strconv.Itoa(strings.Count(before, "\n") + 1)
}
