package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// dock is a program in which a thread reads memory of the heap to which another thread stores only after that. That one waits for the
// reader, so no experiment has the store come first.
const dock = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct parcel { int weight; char street[40]; };
static struct {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct parcel **bay;
	int in, out;
} dock = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0 };
static struct parcel *pick(void)
{
	struct parcel *p;
	pthread_mutex_lock(&dock.lock);
	if (dock.in == dock.out)
		pthread_cond_wait(&dock.arrived, &dock.lock);
	p = dock.bay[dock.out++];
	pthread_mutex_unlock(&dock.lock);
	return p;
}
static int picked(void)
{
	int n;
	pthread_mutex_lock(&dock.lock);
	n = dock.out;
	pthread_mutex_unlock(&dock.lock);
	return n;
}
static void *drive(void *arg)
{
	struct parcel *p = pick();
	usleep(120000);
	*(int *)arg = p->weight;
	return NULL;
}
static void unload(int weight)
{
	struct parcel *p = calloc(1, sizeof *p);
	p->weight = weight;
	pthread_mutex_lock(&dock.lock);
	dock.bay[dock.in++] = p;
	pthread_cond_broadcast(&dock.arrived);
	pthread_mutex_unlock(&dock.lock);
}
int main(void)
{
	pthread_t drivers[2];
	int weights[2] = { 0, 0 };
	dock.bay = malloc(8 * sizeof *dock.bay);
	for (int i = 0; i < 2; i++)
		pthread_create(&drivers[i], NULL, drive, &weights[i]);
	usleep(30000);
	unload(4);
	while (picked() < 2)
		usleep(1000);
	unload(7);
	for (int i = 0; i < 2; i++)
		pthread_join(drivers[i], NULL);
	printf("%d\n", weights[0] + weights[1]);
	return 0;
}
`

// TestSetLater: that memory has no value yet is not the first cause where another thread gives it one later.
func TestSetLater(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"dock.c", "gcc", "-O0"},
		{"dock.c", "clang", "-O1"},
	}, func(string) string { return dock }, "SIGSEGV", func(t *testing.T, _ string, d *evidence.Diagnosis) {
		if len(d.Causes) > 0 && d.Causes[0].Kind == evidence.CauseUninitialised {
			t.Errorf("%s: %s", d.Causes[0].Proof, d.Causes[0].Summary)
		}
	}, "-pthread")
}
