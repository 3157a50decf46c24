package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// tally is a program whose threads lose an update of a counter in each of several rounds.
const tally = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct shop { int id, visitors; };
static struct shop *shop;
static void enter(struct shop *s)
{
	int now = s->visitors;
	usleep(40000);
	s->visitors = now + 1;
}
static void *door(void *arg)
{
	usleep(*(int *)arg);
	for (int i = 0; i < 3; i++) {
		enter(shop);
		usleep(40000);
	}
	return NULL;
}
static void close_shop(const struct shop *s)
{
	if (s->visitors != 9)
		abort();
	printf("%d visitors\n", s->visitors);
}
int main(void)
{
	pthread_t doors[3];
	int late[3] = { 0, 10000, 20000 };
	shop = calloc(1, sizeof *shop);
	for (int i = 0; i < 3; i++)
		pthread_create(&doors[i], NULL, door, &late[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(doors[i], NULL);
	close_shop(shop);
	return 0;
}
`

// TestRecurs: an interleaving is not ruled out because the failure stays without its last occurrence.
func TestRecurs(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"tally.c", "gcc", "-O0"},
		{"tally.c", "clang", "-O2"},
	}, func(string) string { return tally }, "SIGABRT", func(t *testing.T, _ string, d *evidence.Diagnosis) {
		told := append(append([]evidence.Cause{}, d.Causes...), d.Leads...)
		if len(told) == 0 || told[0].Kind != evidence.CauseAtomicity || told[0].Site == nil || told[0].Site.Function != "enter" {
			t.Errorf("told first: %+v; ruled out: %+v", told, d.Excluded)
		}
	}, "-pthread")
}
