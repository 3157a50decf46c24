package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// goneFramePrograms hand the address of a variable of a function to another thread, and the function returns before that thread has read it. By then, the
// next function has the same memory for its own variable.
var goneFramePrograms = map[string]string{"orders.c": `#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct sheet { long rows; char *text; long used; };
struct order { long number; struct sheet *into; int done; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct order *waiting;
static int posted;
static void *clerk(void *arg)
{
    struct order *o = NULL;
    while (!o) {
        pthread_mutex_lock(&lock);
        o = waiting;
        pthread_mutex_unlock(&lock);
    }
    usleep(20000);
    pthread_mutex_lock(&lock);
    o->into->used += o->number;
    o->done = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}
__attribute__((noinline)) static int submit(long number)
{
    struct sheet s;
    struct order o;
    memset(&s, 0, sizeof s);
    memset(&o, 0, sizeof o);
    o.number = number;
    o.into = &s;
    pthread_mutex_lock(&lock);
    waiting = &o; // CAUSE
    posted++;
    int done = o.done;
    pthread_mutex_unlock(&lock);
    return done ? (int)s.used : -1; // CAUSE
}
__attribute__((noinline)) static long tally(long n)
{
    volatile long window[64];
    long sum = 0;
    for (int i = 0; i < 64; i++)
        window[i] = n + i % 7;
    for (int round = 0; round < 400; round++) {
        usleep(1000);
        for (int i = 0; i < 64; i++)
            window[i] = sum % 90 + i, sum += window[(i * 7) % 64];
    }
    return sum;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, clerk, NULL);
    int r = submit(41);
    printf("%d %ld\n", r, tally(17));
    pthread_join(t, NULL);
    return 0;
}
`, "signs.cc": `#include <atomic>
#include <cstdio>
#include <thread>
#include <unistd.h>
struct Sign { const char *letters; int lit; };
static std::atomic<Sign *const *> board;
static void show()
{
    Sign *const *list;
    while (!(list = board.load()))
        usleep(500);
    usleep(20000);
    for (int i = 0; i < 4; i++)
        list[i]->lit++;
}
__attribute__((noinline)) static void hang(Sign *signs)
{
    Sign *list[4];
    for (int i = 0; i < 4; i++)
        list[i] = &signs[i];
    board = list; // CAUSE
} // CAUSE
__attribute__((noinline)) static unsigned draw(unsigned seed)
{
    volatile unsigned cells[40];
    for (int i = 0; i < 40; i++)
        cells[i] = seed % 200 + i;
    unsigned sum = 0;
    for (int round = 0; round < 300; round++) {
        usleep(1000);
        for (int i = 0; i < 40; i++)
            cells[i] = sum % 60, sum += cells[(i * 3) % 40] + 1;
    }
    return sum;
}
int main()
{
    static Sign signs[4];
    std::thread t(show);
    hang(signs);
    printf("%u\n", draw(7));
    t.join();
}
`}

// TestGoneFrame: the cause is that the frame was gone. What another function did to its memory is no access to the variable that was there, so
// nothing is proved by an order of these.
func TestGoneFrame(t *testing.T) {
	builds := []build{{"orders.c", "gcc", "-O1"}, {"orders.c", "clang", "-O2"}, {"signs.cc", "g++", "-O1"}, {"signs.cc", "clang++", "-O2"}}
	eachBuild(t, builds, func(source string) string { return goneFramePrograms[source] }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 || d.Causes[0].Site == nil || d.Causes[0].Basis != evidence.BasisLifetime || !isCause(goneFramePrograms[source], d.Causes[0].Site.Line) {
			t.Fatalf("%+v\nlimits %+v", d.Causes, d.Coverage.Limits)
		}
		for _, c := range d.Causes {
			if c.Proof == evidence.Proved {
				t.Errorf("proved: %s", c.Summary)
			}
		}
	}, "-pthread")
}
