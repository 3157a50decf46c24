package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// taken are programs in which two threads take one of several jobs twice: each looks for one that is free, gives the lock back, and takes
// the job later. They fail by a sum of all that was done. What threads do with another job at the time has no part in it, but to keep one
// of them back for so long keeps it from the job as well.
var taken = map[string]string{"list.c": `#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { jobs = 6, workers = 2 };
enum state { FREE = 1, BUSY, DONE };
struct job { struct job *next; enum state state; int size; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *list;
static int wanted, done;
static void nap(int ms)
{
    struct timespec t = { 0, ms * 1000000 };
    nanosleep(&t, NULL);
}
static struct job *first(void)
{
    struct job *j = list;
    while (j && j->state != FREE)
        j = j->next;
    return j;
}
static void *work(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        struct job *j = first();
        pthread_mutex_unlock(&lock);
        if (!j)
            return unused;
        if (j->size == 2)
            nap(300);
        pthread_mutex_lock(&lock);
        j->state = BUSY; // BUG
        pthread_mutex_unlock(&lock);
        nap(2);
        __sync_fetch_and_add(&done, j->size);
        pthread_mutex_lock(&lock);
        j->state = DONE;
        pthread_mutex_unlock(&lock);
    }
}
int main(void)
{
    pthread_t t[workers];
    for (int i = 0; i < jobs; i++) {
        struct job *j = calloc(1, sizeof *j);
        j->state = FREE;
        j->size = i + 1;
        j->next = list;
        list = j;
        wanted += j->size;
    }
    for (int i = 0; i < workers; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < workers; i++)
        pthread_join(t[i], NULL);
    assert(done == wanted);
    puts("good");
    return 0;
}
`, "seats.cc": `#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
struct Seat { int price; bool sold; };
static std::mutex door;
static Seat seats[5] = {{3, false}, {4, false}, {9, false}, {5, false}, {6, false}};
static int earned;
static void rest(int ms)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}
static int pick()
{
    std::lock_guard<std::mutex> in(door);
    for (int i = 0; i < 5; i++)
        if (!seats[i].sold)
            return i;
    return -1;
}
static void sell()
{
    for (int i; (i = pick()) >= 0;) {
        if (i == 3)
            rest(300);
        {
            std::lock_guard<std::mutex> in(door);
            seats[i].sold = true; // BUG
        }
        rest(3);
        __sync_fetch_and_add(&earned, seats[i].price);
    }
}
int main()
{
    std::thread a(sell), b(sell);
    a.join();
    b.join();
    if (earned != 27)
        abort();
    puts("good");
    return 0;
}
`}

// TestTaken: no order of another job's accesses is a proved cause.
func TestTaken(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"list.c", "gcc", "-O2"},
		{"list.c", "clang", "-O0"},
		{"seats.cc", "clang++", "-O2"},
		{"seats.cc", "g++", "-O0"},
	}, func(source string) string { return taken[source] }, "SIGABRT", func(t *testing.T, source string, d *evidence.Diagnosis) {
		bug := lineOf(taken[source], "// BUG")
		for _, c := range d.Causes {
			if c.Proof == evidence.Proved && (c.Interleaving == nil || len(c.Interleaving.Variables) != 1 || !slices.ContainsFunc(c.Interleaving.Failing, func(a evidence.SeenAccess) bool {
				return a.Kind == evidence.Write && a.Site != nil && a.Site.Line == bug
			})) {
				t.Errorf("proved: %s", c.Summary)
			}
		}
	}, "-pthread")
}
