package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// bystanders are programs in which a handler, or another thread, changes two variables. They fail by the second one; but they also wait for
// the first one, and so do not fail if it comes as late as that.
var bystanders = map[string]bystander{"ticks.c": {`#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static volatile int ticks, tail;
static int taken;
static void nap(void)
{
    struct timespec t = { 0, 4000000 };
    nanosleep(&t, NULL);
}
static void on_tick(int number)
{
    (void)number;
    ticks = ticks + 1;
    tail = tail + 7;
}
__attribute__((noinline)) static void take(void)
{
    int first = tail;
    for (int i = 0; i < 15; i++)
        nap();
    taken = tail - first;
}
int main(void)
{
    struct itimerval when = { { 0, 0 }, { 0, 20000 } };
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &when, NULL);
    take();
    for (int i = 0; i < 200 && !ticks; i++)
        nap();
    int kept[4] = { 0, taken };
    assert(kept[1] == 0);
    puts("good");
    return 0;
}
`, "tail"}, "rounds.cc": {`#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
static std::atomic<int> rounds;
static std::atomic<int> stock{40};
static int sold;
static void sell()
{
    usleep(40000);
    rounds++;
    stock -= 3;
}
__attribute__((noinline)) static void count()
{
    int before = stock;
    usleep(100000);
    sold = before - stock;
}
int main()
{
    std::thread seller(sell);
    count();
    for (int i = 0; i < 200 && !rounds; i++)
        usleep(5000);
    seller.join();
    int copy = sold;
    if (copy != 0)
        std::abort();
    std::puts("good");
}
`, "stock"}}

// bystander is a program's text, and the variable that its failing check depends on.
type bystander struct{ text, variable string }

// bystanderOf is the program of a source file; ticks.c is C++ as well.
func bystanderOf(source string) bystander {
	if source == "ticks.cc" {
		source = "ticks.c"
	}
	return bystanders[source]
}

// TestBystander: the order of the variable that the failing check depends on is the cause.
func TestBystander(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"ticks.c", "gcc", "-O1"},
		{"ticks.c", "clang", "-O0"},
		{"ticks.cc", "g++", "-O2"},
		{"rounds.cc", "clang++", "-O2"},
		{"rounds.cc", "g++", "-O1"},
	}, func(source string) string { return bystanderOf(source).text }, "SIGABRT", func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause; leads %+v", d.Leads)
		}
		c, variable := &d.Causes[0], bystanderOf(source).variable
		if c.Proof != evidence.Proved || c.Interleaving == nil || !slices.ContainsFunc(c.Interleaving.Variables, func(name string) bool { return strings.HasPrefix(name, variable) }) {
			t.Errorf("%s: %s", c.Proof, c.Summary)
		}
	}, "-pthread")
}
