package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// laterLocalPrograms hand a thread the address of a variable at the line that is marked CAUSE, and leave the variable's function before the
// thread uses it. With an argument they wait for the thread first; jobs.c has no items then.
var laterLocalPrograms = map[string]string{
	// The main thread's variable, by a queue, and a program that gives up.
	"jobs.c": `#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct job { int items, done; long sum; };
static struct job *volatile queued;
static sem_t ready, go, over;
static int wait_first;
static void *work(void *unused)
{
	sem_wait(&ready);
	sem_wait(&go);
	struct job *j = queued;
	if (j->items < 1 || j->items > 100)
		abort();
	for (int i = 0; i < j->items; i++)
		j->sum += i;
	sem_post(&over);
	return unused;
}
__attribute__((noinline)) static void put(struct job *j) { queued = j; }
__attribute__((noinline)) static void submit(int items)
{
	struct job job = { items, 0, 0 };
	put(&job); // CAUSE
	sem_post(&ready);
	if (wait_first) {
		sem_post(&go);
		sem_wait(&over);
	}
}
__attribute__((noinline)) static void report(const char *text)
{
	volatile char line[1500];
	for (unsigned i = 0; i < sizeof line; i++)
		line[i] = text[i % 4];
}
int main(int argc, char **argv)
{
	pthread_t t;
	wait_first = argc > 1;
	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&over, 0, 0);
	pthread_create(&t, NULL, work, argv);
	submit(argc > 1 ? 0 : 7);
	report("jobs");
	sem_post(&go);
	pthread_join(t, NULL);
	puts("done");
	return 0;
}
`,
	// A variable of a thread that has ended its function, in a member of a heap object, and a fault.
	"names.c": `#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct request { const char **names; int count; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request *posted;
static int phase, keep;
static void enter(int next)
{
	pthread_mutex_lock(&lock);
	phase = next;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}
static void await(int wanted)
{
	pthread_mutex_lock(&lock);
	while (phase < wanted)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
__attribute__((noinline)) static void post(struct request *r)
{
	const char *names[6] = { "one", "two", "three", "four", "five", "six" };
	r->names = names; // CAUSE
	r->count = 6;
	posted = r;
	enter(1);
	if (keep)
		await(2);
}
__attribute__((noinline)) static void clear(void)
{
	volatile unsigned long room[40];
	for (int i = 0; i < 40; i++)
		room[i] = 0x1111111111111111u * (unsigned)(i % 3 + 1);
}
static void *client(void *r)
{
	post(r);
	clear();
	if (!keep)
		enter(2);
	return r;
}
__attribute__((noinline)) static size_t letters(const struct request *r)
{
	size_t sum = 0;
	for (int i = 0; i < r->count; i++)
		for (const char *c = r->names[i]; *c; c++)
			sum++;
	return sum;
}
int main(int argc, char **argv)
{
	pthread_t t;
	(void)argv;
	keep = argc > 1;
	pthread_create(&t, NULL, client, calloc(1, sizeof(struct request)));
	await(keep ? 1 : 2);
	printf("%zu\n", letters(posted));
	enter(2);
	pthread_join(t, NULL);
	return 0;
}
`,
}

// TestLaterLocal: a variable of a function that has returned, which another thread uses, is the cause.
func TestLaterLocal(t *testing.T) {
	crashtest.TracesAccesses(t)
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause is named: %+v", d.Unknown)
		}
		if c := &d.Causes[0]; c.Basis != evidence.BasisLifetime || c.Site == nil || !isCause(laterLocalPrograms[source], c.Site.Line) {
			t.Errorf("%q (%s) at %+v", c.Summary, c.Basis, c.Site)
		}
	}
	text := func(source string) string { return laterLocalPrograms[source] }
	eachBuild(t, []build{{"jobs.c", "gcc", "-O0"}, {"jobs.c", "clang", "-O2"}}, text, "SIGABRT", check, "-pthread")
	eachBuild(t, []build{{"names.c", "clang", "-O0"}, {"names.c", "gcc", "-O2"}}, text, "SIGSEGV", check, "-pthread")
	for _, level := range []string{"-O0", "-O2"} {
		t.Run("jobs.c, still in its function "+level, func(t *testing.T) {
			p := crashtest.Program{Source: "jobs.c", Text: laterLocalPrograms["jobs.c"], Flags: []string{level, "-pthread"}}
			d := diagnosed(t, p, []string{"wait"}, "SIGABRT").Diagnosis
			for i := range d.Causes {
				if c := &d.Causes[i]; c.Basis == evidence.BasisLifetime {
					t.Errorf("%q at %+v", c.Summary, c.Site)
				}
			}
		})
	}
}
