package main

import (
	"encoding/json"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// hanging ends by a signal that leaves no core, a second after it hangs.
const hanging = `
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t met;
static int count;

static void *there(void *limit)
{
	struct timespec later;

	pthread_mutex_lock(&first);
	pthread_barrier_wait(&met);
	if (!limit) {
		pthread_mutex_lock(&second);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &later);
	later.tv_sec += 3600;
	if (*(char *)limit == 't')
		pthread_cond_timedwait(&news, &first, &later);
	else
		pthread_cond_wait(&news, &first);
	return NULL;
}

static void *back(void *unused)
{
	for (int i = 0; i < 1000; i++) { /* without an event, but for the first */
		pthread_mutex_lock(&second);
		count++;
		pthread_mutex_unlock(&second);
	}
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&met);
	pthread_mutex_lock(&first);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	pthread_barrier_init(&met, NULL, argc > 1 ? 2 : 3);
	pthread_create(&threads[0], NULL, there, argc > 1 ? argv[1] : NULL);
	if (argc == 1)
		pthread_create(&threads[1], NULL, back, NULL);
	pthread_barrier_wait(&met);
	alarm(1);
	pthread_join(threads[0], NULL);
	return 0;
}
`

type hangReport struct {
	Case struct {
		Failure   struct{ Kind, Sentence, Proof string }
		Diagnosis struct{ Causes []struct{ Kind string } }
	}
}

// TestCrashOfAHang: a program that hung and was killed by hand is diagnosed from its recording,
// which has no core. A wait that ends by itself is no hang.
func TestCrashOfAHang(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "hanging.c", Text: hanging, Flags: []string{"-O1", "-pthread"}})
	for _, x := range []struct{ name, argument, kind, proof, sentence string }{
		{"mutexes", "", "deadlock", "from core",
			"thread 2 waits for mutex `second` held by thread 3, thread 3 waits for mutex `first` held by thread 2; the process died of SIGALRM and left no core"},
		{"condition", "for good", "deadlock", "inferred",
			"thread 1 waits for the end of thread 2, thread 2 waits for condition variable `news`; no thread is left to end that; the process died of SIGALRM and left no core"},
		{"limited", "timed", "no-failure", "inferred", "the process died of SIGALRM and left no core"},
	} {
		t.Run(x.name, func(t *testing.T) {
			program := []string{exe}
			if x.argument != "" {
				program = append(program, x.argument)
			}
			var report hangReport
			// On a busy machine a thread may not reach its wait within the second.
			for range 5 {
				report = hangReport{}
				o := diagnose(t, nil, "crash", "--format", "json", "--recording", recordedAt(t, program...))
				if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
					t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
				}
				if report.Case.Failure.Kind == x.kind {
					break
				}
			}
			f := report.Case.Failure
			if f.Kind != x.kind || f.Proof != x.proof || !strings.Contains(f.Sentence, x.sentence) {
				t.Errorf("kind %s [%s]: %s", f.Kind, f.Proof, f.Sentence)
			}
			causes := report.Case.Diagnosis.Causes
			if cycle := x.name == "mutexes"; cycle != (len(causes) == 1 && causes[0].Kind == "deadlock") {
				t.Errorf("causes %v", causes)
			}
		})
	}
}

// left waits for a thread that no thread wakes, when all others have ended.
const left = `
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

static void *waits(void *unused)
{
	pthread_mutex_lock(&lock);
	alarm(1);
	pthread_cond_wait(&news, &lock);
	return unused;
}

static void *ends(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t waiter, others[8];

	pthread_create(&waiter, NULL, waits, NULL);
	for (int i = 0; i < 8; i++)
		pthread_create(&others[i], NULL, ends, NULL);
	pthread_join(waiter, NULL);
	return 0;
}
`

// TestCrashOfAHangAfterEnds: a thread that has ended, but that the kernel still has when the replay
// is stopped, is not one that could wake the others.
func TestCrashOfAHangAfterEnds(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "left.c", Text: left, Flags: []string{"-O1", "-pthread"}})
	recording := recordedAt(t, exe)
	for range 10 {
		var report hangReport
		o := diagnose(t, nil, "crash", "--format", "json", "--recording", recording)
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
			t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
		}
		if f := report.Case.Failure; f.Kind != "deadlock" {
			t.Fatalf("kind %s: %s", f.Kind, f.Sentence)
		}
	}
}

const pingPong = `
#include <pthread.h>
#include <sys/time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn;

static void *play(void *me)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (turn != (long)me)
			pthread_cond_wait(&turned, &lock);
		turn = !turn;
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&turned);
	}
	return me;
}

int main(void)
{
	struct itimerval end = { .it_value.tv_usec = 20000 };
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, play, (void *)0);
	pthread_create(&threads[1], NULL, play, (void *)1);
	setitimer(ITIMER_REAL, &end, NULL);
	pthread_join(threads[0], NULL);
}
`

// TestCrashOfNoHang: threads that wait for each other in turn, and would have continued, are not
// reported as stuck, wherever the signal ended them.
func TestCrashOfNoHang(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "pingpong.c", Text: pingPong, Flags: []string{"-O1", "-pthread"}})
	for range 10 {
		var report hangReport
		o := diagnose(t, nil, "crash", "--format", "json", "--recording", recordedAt(t, exe))
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
			t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
		}
		if f := report.Case.Failure; f.Kind != "no-failure" {
			t.Fatalf("kind %s [%s]: %s", f.Kind, f.Proof, f.Sentence)
		}
	}
}

const relocking = `
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static void *relock(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pause();
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, relock, NULL);
	while (!done)
		;
	raise(SIGTERM);
}
`

// TestRelockedAtTheEnd: the manifest of a process that leaves no core counts the mutexes that its
// threads took after their last events. Without the counts a replay would not know where to stop.
func TestRelockedAtTheEnd(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "relocking.c", Text: relocking, Flags: []string{"-O1", "-pthread"}})
	rec, err := record.Open(recordedAt(t, exe))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	const behindTheFirst = 999
	if o := &rec.Manifest.Outcome; o.Relocked[2] != behindTheFirst {
		t.Errorf("%s: relocked %v", o, o.Relocked)
	}
}

// The report says what each thread in a system call waits for, and what the descriptor is. The
// process ends a second after its other threads start, so they have reached their calls, or are
// still before them.
func TestCrashNamesWaitsInCalls(t *testing.T) {
	const text = `
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static int ends[2], counter;
static void *reader(void *arg) { char c; return read(ends[0], &c, 1) == 1 ? arg : NULL; }
static void *counted(void *arg) { eventfd_t n; return eventfd_read(counter, &n) ? NULL : arg; }
static void *parent(void *arg) { return wait(NULL) > 0 ? arg : NULL; }
int main(void)
{
	pthread_t t;
	pid_t child;
	if (pipe(ends) || (counter = eventfd(0, 0)) < 0 || (child = fork()) < 0) return 1;
	if (!child) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) pause(); }
	pthread_create(&t, NULL, reader, NULL);
	pthread_create(&t, NULL, counted, NULL);
	pthread_create(&t, NULL, parent, NULL);
	sleep(1);
	raise(SIGTERM);
	return 0;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "waits.c", Text: text, Flags: []string{"-O1", "-pthread"}})
	o := diagnose(t, nil, "crash", "--recording", recordedAt(t, exe))
	for _, want := range []string{`"reader"`, ", a pipe (read)", ", an event counter (eventfd) (read)", "waits for a child process (wait4)"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("status %d: %q is missing in\n%s%s", o.status, want, o.stdout, o.stderr)
		}
	}
}
