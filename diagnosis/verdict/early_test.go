package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// early are programs in which a value is read before another thread stores the right one, and goes a long way from there: nothing that the
// failing code touches has it.
var early = map[string]struct{ text, variable string }{"board.c": {`
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct { int ready, value; } board;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen = 14;
char shelves[64][1 << 20];
static void *write_board(void *arg)
{
	pthread_mutex_lock(&lock);
	board.ready = 1;
	pthread_mutex_unlock(&lock);
	usleep(100000);
	pthread_mutex_lock(&lock);
	board.value = 14;
	pthread_mutex_unlock(&lock);
	return arg;
}
static void *read_board(void *arg)
{
	usleep(30000);
	pthread_mutex_lock(&lock);
	if (board.ready)
		seen = board.value;
	pthread_mutex_unlock(&lock);
	return arg;
}
__attribute__((noinline)) static int first(long at) { return shelves[at][0]; }
int main(void)
{
	pthread_t one, two;
	char text[40];
	board.value = 9777;
	if (pthread_create(&one, NULL, write_board, NULL) || pthread_create(&two, NULL, read_board, NULL))
		return 1;
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	snprintf(text, sizeof text, "at=%d;", seen);
	printf("%d\n", first(atoi(strchr(text, '=') + 1)));
	return 0;
}
`, "board.value"}, "prices.cc": {`
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>
struct order { long price; order *before; };
struct parcel { int sender; order *content; };
static order *newest;
static order cheap = { 3, nullptr };
static unsigned char wire[64];
static void set_newest()
{
	usleep(100000);
	newest = &cheap;
}
__attribute__((noinline)) static parcel pack() { return parcel{ 7, newest }; }
__attribute__((noinline)) static long paid(const order *o) { return o->price; }
int main()
{
	std::thread one(set_newest);
	parcel sent = pack(), got;
	std::memcpy(wire, &sent, sizeof sent);
	one.join();
	std::memcpy(&got, wire, sizeof got);
	std::printf("%ld\n", paid(got.content));
}
`, "newest"}}

// TestEarly: a run in which the read waits for the store tells that the order is the cause.
func TestEarly(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"board.c", "gcc", "-O3"},
		{"board.c", "clang", "-O0"},
		{"prices.cc", "g++", "-O0"},
		{"prices.cc", "clang++", "-O1"},
	}, func(source string) string { return early[source].text }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause; leads %+v", d.Leads)
		}
		if c := &d.Causes[0]; c.Basis != evidence.BasisOrder || c.Interleaving == nil || !slices.Contains(c.Interleaving.Variables, early[source].variable) {
			t.Errorf("%s: %s", c.Proof, c.Summary)
		}
	}, "-pthread")
}

// rates is a program in which a thread stores several values one after the other, of which one is bad: to read another one does not tell that
// the order is wrong.
const rates = `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rate = 3;
static int rates[4] = { 2, 9777, 4, 5 };
char shelves[64][1 << 20];
static void set_rate(int value)
{
	pthread_mutex_lock(&lock);
	rate = value;
	pthread_mutex_unlock(&lock);
}
static void *feed(void *arg)
{
	for (int i = 0; i < 4; i++) {
		set_rate(rates[i]);
		usleep(40000);
	}
	return arg;
}
__attribute__((noinline)) static int first(long at) { return shelves[at][0]; }
int main(void)
{
	pthread_t one;
	int now;
	if (pthread_create(&one, NULL, feed, NULL))
		return 1;
	usleep(60000);
	pthread_mutex_lock(&lock);
	now = rate;
	pthread_mutex_unlock(&lock);
	pthread_join(one, NULL);
	printf("%d\n", first(now));
	return 0;
}
`

// TestSuccessive: that a run passes which reads a later value is no proof.
func TestSuccessive(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"rates.c", "gcc", "-O1"},
		{"rates.c", "clang", "-O0"},
	}, func(string) string { return rates }, "SIGSEGV", func(t *testing.T, _ string, d *evidence.Diagnosis) {
		for _, c := range d.Causes {
			if c.Basis == evidence.BasisOrder {
				t.Errorf("%s: %s", c.Proof, c.Summary)
			}
		}
	}, "-pthread")
}
