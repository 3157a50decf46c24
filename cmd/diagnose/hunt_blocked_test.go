package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// A reader waits for news on main's stack that no thread brings, and main waits for the reader.
const noNews = `
#include <condition_variable>
#include <mutex>
#include <thread>

struct board {
	std::mutex lock;
	std::condition_variable there;
	bool news = false;

	void read()
	{
		std::unique_lock<std::mutex> held(lock);
		there.wait(held, [this] { return news; });
	}
};

int main()
{
	board notes;
	std::thread reader([&] { notes.read(); });
	reader.join();
}
`

// TestHuntBlocked: if every thread waits in the recording of a hunt, the report begins with what
// each thread waits for.
func TestHuntBlocked(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "board.cc", Text: noNews, Flags: []string{"-O0", "-pthread"}})
	f := blockedSentence(t, exe)
	const want = "thread 1 waits for the end of thread 2, thread 2 waits for condition variable `main's notes.there`; no thread is left to end that"
	if f.Kind != "deadlock" || f.Proof != "from core" || !strings.Contains(f.Sentence, want) {
		t.Errorf("kind %s [%s]: %s", f.Kind, f.Proof, f.Sentence)
	}
}

// blockedSentence hunts for a deadlock of a program and returns what `crash` says of it.
func blockedSentence(t *testing.T, exe string) (f struct{ Kind, Sentence, Proof string }) {
	t.Helper()
	output := filepath.Join(t.TempDir(), "recordings")
	o := diagnose(t, nil, "hunt", "--output", output, "--", exe)
	if o.status == exitInput {
		t.Skip(o.stderr)
	}
	if o.status != exitFailingSchedule {
		t.Fatalf("status %d: %s%s", o.status, o.stdout, o.stderr)
	}
	found, err := filepath.Glob(filepath.Join(output, "*-deadlock"))
	if err != nil || len(found) != 1 {
		t.Fatalf("recordings %v, %v: %s", found, err, o.stdout)
	}
	o = diagnose(t, nil, "crash", "--time", "1s", "--format", "json", "--recording", found[0]) // the causes are not looked at
	var report struct {
		Case struct {
			Failure struct{ Kind, Sentence, Proof string }
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
		t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
	}
	return report.Case.Failure
}

// Locks in no variable: in an object of the heap, in one that a member of another points to, and in one that a member function is called for.
const (
	heapLocks = `
#include <pthread.h>
#include <stdlib.h>

struct account { long balance; pthread_mutex_t lock; };
struct order { struct account *from, *to; };

static void *transfer(void *argument)
{
	struct order *o = argument;
	struct account *from = o->from, *to = o->to;

	pthread_mutex_lock(&from->lock);
	pthread_mutex_lock(&to->lock);
	from->balance--;
	to->balance++;
	pthread_mutex_unlock(&to->lock);
	pthread_mutex_unlock(&from->lock);
	return 0;
}

int main(void)
{
	struct account *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
	struct order there = { a, b }, back = { b, a };
	pthread_t threads[2];

	pthread_mutex_init(&a->lock, 0);
	pthread_mutex_init(&b->lock, 0);
	pthread_create(&threads[0], 0, transfer, &there);
	pthread_create(&threads[1], 0, transfer, &back);
	pthread_join(threads[0], 0);
	pthread_join(threads[1], 0);
	return 0;
}
`
	pointedCondition = `
#include <pthread.h>
#include <stdlib.h>

struct queue { int jobs; pthread_mutex_t *lock; pthread_cond_t *ready; };

static __attribute__((noinline)) void sleep_on(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	pthread_cond_wait(cond, lock);
}

static void *take(void *argument)
{
	struct queue *q = argument;

	pthread_mutex_lock(q->lock);
	while (!q->jobs)
		sleep_on(q->ready, q->lock);
	q->jobs--;
	pthread_mutex_unlock(q->lock);
	return 0;
}

int main(void)
{
	struct queue *q = calloc(1, sizeof *q);
	pthread_t thread;

	q->lock = calloc(1, sizeof *q->lock);
	q->ready = calloc(1, sizeof *q->ready);
	pthread_create(&thread, 0, take, q);
	pthread_join(thread, 0);
	return 0;
}
`
	classLock = `
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

class Crew {
	std::mutex guard_;
	std::condition_variable idle_;
	int left_ = 1;
public:
	__attribute__((noinline)) void wait()
	{
		std::unique_lock<std::mutex> held(guard_);
		idle_.wait(held, [this] { return left_ == 0; });
	}
};

int main()
{
	auto crew = std::make_unique<Crew>();
	std::thread waiter([&] { crew->wait(); });
	waiter.join();
}
`
)

// TestHuntBlockedPaths: a lock that no variable has is named by the pointers of the frames that wait for it, each thread's by its own.
func TestHuntBlockedPaths(t *testing.T) {
	for _, p := range []struct {
		source, text string
		compilers    []string
		want         []string
	}{
		{"heap.c", heapLocks, []string{"gcc", "clang"}, []string{"(`to->lock`) held by thread 3", "(`to->lock`) held by thread 2"}},
		{"pointed.c", pointedCondition, []string{"gcc", "clang"}, []string{"(`*q->ready`)"}},
		{"class.cc", classLock, []string{"g++", "clang++"}, []string{"(`this->idle_`)"}},
	} {
		for i, level := range []string{"-O0", "-O2"} {
			t.Run(p.source+level, func(t *testing.T) {
				f := blockedSentence(t, crashtest.Compile(t, crashtest.Program{Compiler: p.compilers[i], Source: p.source, Text: p.text, Flags: []string{level, "-g", "-pthread"}}))
				for _, want := range p.want {
					if f.Kind != "deadlock" || !strings.Contains(f.Sentence, want) {
						t.Errorf("kind %s: %q is missing in: %s", f.Kind, want, f.Sentence)
					}
				}
			})
		}
	}
}

// The run that passes has the same accesses in the same order, as the wait precedes them. The cause
// is found without that run.
func TestHuntBlockedCause(t *testing.T) {
	crashtest.TracesAccesses(t)
	text, err := os.ReadFile("../../internal/testdata/hunt/lost_signal.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "lost_signal.c", Text: string(text), Flags: []string{"-O1", "-pthread"}})
	o := diagnose(t, nil, "hunt", "--diagnose", "--output", filepath.Join(t.TempDir(), "recordings"), "--", exe)
	if o.status == exitInput {
		t.Skip(o.stderr)
	}
	for _, want := range []string{"deadlock in", "main's p.stop", "[proved]", "missing lock  main's p.lock"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("status %d, %q is missing:\n%s%s", o.status, want, o.stdout, o.stderr)
		}
	}
}

// TestHuntWaits: in the core of a hunt's failing run each thread but one sleeps until it is its
// turn. The report says what a thread waits for only where the program made it wait.
func TestHuntWaits(t *testing.T) {
	seats, err := os.ReadFile("../../docs/examples/seats.c")
	if err != nil {
		t.Fatal(err)
	}
	const turns = `
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static int turns;
static void *take(void *p)
{
	pthread_mutex_lock(&outer);
	turns++;
	assert(turns < 2);
	pthread_mutex_unlock(&outer);
	return p;
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, take, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
`
	for name, text := range map[string]string{"seats.c": string(seats), "turns.c": turns} {
		exe := crashtest.Compile(t, crashtest.Program{Source: name, Text: text, Flags: []string{"-O1", "-pthread"}})
		output := filepath.Join(t.TempDir(), "recordings")
		o := diagnose(t, nil, "hunt", "--output", output, "--", exe)
		if o.status == exitInput {
			t.Skip(o.stderr)
		}
		found, err := filepath.Glob(filepath.Join(output, "*-SIGABRT"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: recordings %v, %v: %s%s", name, found, err, o.stdout, o.stderr)
		}
		for _, args := range [][]string{{"--core", filepath.Join(found[0], "core")}, {"--recording", found[0], "--time", "1ns"}} {
			o = diagnose(t, nil, append([]string{"crash"}, args...)...)
			for _, wrong := range []string{"held by thread id", "no thread of this process", "waits for futex", "waits for thread exit"} {
				if o.status != exitOK || strings.Contains(o.stdout, wrong) {
					t.Errorf("%s %v: status %d, %q: %s%s", name, args[0], o.status, wrong, o.stdout, o.stderr)
				}
			}
			if name == "seats.c" && !strings.Contains(o.stdout, "waits for the end of thread ") {
				t.Errorf("%s: that main waits for a clerk is not said: %s", args[0], o.stdout)
			}
		}
	}
}
