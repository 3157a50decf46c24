package main

import (
	"encoding/json"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// waitingInCpp waits in one of several ways, by its first argument, and ends by a signal that leaves no
// core. In the way "turns" its threads wake each other for ever.
const waitingInCpp = `
#include <atomic>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unistd.h>

static std::atomic<int> asked, answered, turn;
static std::promise<int> promised;
static pthread_barrier_t met;
static std::shared_mutex table;
static std::mutex statistics;

static void waits(const std::string &way)
{
	if (way == "future")
		promised.get_future().get();
	else if (way == "atomics")
		asked.wait(0);
	else if (way == "turns")
		for (;;) {
			turn.wait(0);
			turn = 0;
			turn.notify_one();
		}
	else {
		std::shared_lock reading(table);
		if (way == "upgrade")
			std::unique_lock writing(table);
		pthread_barrier_wait(&met);
		std::lock_guard counting(statistics);
	}
}

int main(int, char **argv)
{
	std::string way = argv[1];
	pthread_barrier_init(&met, nullptr, 2);
	std::thread other(waits, way);

	alarm(1);
	if (way == "atomics") {
		answered.wait(0);
		asked = 1;
		asked.notify_one();
	} else if (way == "turns")
		for (;;) {
			turn = 1;
			turn.notify_one();
			turn.wait(1);
		}
	else if (way == "readers") {
		std::lock_guard counting(statistics);
		pthread_barrier_wait(&met);
		std::unique_lock writing(table);
	}
	other.join();
}
`

// TestCrashOfAHangInCpp: threads that wait for a future, for atomic variables, or for the readers of a
// lock, and that no other thread wakes, are a deadlock. Threads that continue are none.
func TestCrashOfAHangInCpp(t *testing.T) {
	for _, compiler := range []string{"g++", "clang++"} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "waiting.cc", Text: waitingInCpp, Compiler: compiler, Flags: []string{"-std=c++20", "-O1", "-pthread"}})
		for way, want := range map[string][]string{
			"future":  {"thread 1 waits for the end of thread 2, thread 2 waits for future or atomic ", "; no thread is left to end that"},
			"atomics": {"thread 1 waits for future or atomic `answered`, thread 2 waits for future or atomic `asked`; no thread is left to end that"},
			"upgrade": {"thread 2 waits for rwlock `table` that it holds itself for reading"},
			"readers": {"thread 1 waits for rwlock `table` held for reading by thread 2", "thread 2 waits for mutex `statistics` held by thread 1"},
			"turns":   nil,
		} {
			t.Run(compiler+"/"+way, func(t *testing.T) { testHang(t, want, exe, way) })
		}
	}
}

// testHang: without sentences, the program does not hang. What its causes may be is not asked.
func testHang(t *testing.T, sentences []string, program ...string) {
	kind, tries := "no-failure", 1
	if len(sentences) > 0 {
		kind, tries = "deadlock", 5 // on a busy machine a thread may not reach its wait within the second
	}
	var report hangReport
	for range tries {
		report = hangReport{}
		o := diagnose(t, nil, "crash", "--time", "10s", "--format", "json", "--recording", recordedAt(t, program...))
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
			t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
		}
		if report.Case.Failure.Kind == kind {
			break
		}
	}
	f := report.Case.Failure
	if f.Kind != kind || f.Proof != "inferred" {
		t.Errorf("kind %s [%s]: %s", f.Kind, f.Proof, f.Sentence)
	}
	for _, s := range sentences {
		if !strings.Contains(f.Sentence, s) {
			t.Errorf("%q is missing in: %s", s, f.Sentence)
		}
	}
}
