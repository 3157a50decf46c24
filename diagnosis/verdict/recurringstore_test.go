package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// storedInRounds store a bad value in rounds, and fail in the first of these. Without the store of that round they fail in a later one.
var storedInRounds = map[string]string{
	"slots.c": `
#include <stdio.h>

static int v = 3;
static int *slots[4] = { &v, &v, &v, &v };

__attribute__((noinline)) static void refill(int k)
{
	slots[k % 4] = k % 3 == 2 ? NULL : &v; // CAUSE
}

int main(void)
{
	int sum = 0;

	for (int k = 0; k < 40; k++) {
		refill(k);
		sum += *slots[k % 4];
	}
	printf("%d\n", sum);
	return 0;
}
`,
	"queue.cpp": `
#include <cstdio>

struct Job {
	int weight;
	Job *next;
};

static Job idle = { 1, nullptr };

struct Queue {
	Job *head = &idle, *current = &idle;

	__attribute__((noinline)) void push(Job *j) { j->next = head; head = j; }
	__attribute__((noinline)) void pop()
	{
		current = head;
		head = head->next; // CAUSE
	}
};

static Queue q;

int main()
{
	static Job jobs[8];
	long done = 0;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3; i++) {
			jobs[i].weight = i + round;
			q.push(&jobs[i]);
		}
		for (int i = 0; i < 4; i++) {
			q.pop();
			done += q.current->weight;
		}
		done += q.head->weight;
	}
	std::printf("%ld\n", done);
}
`,
}

// TestRecurringStore: that a run without the store fails in a later round does not speak against the store.
func TestRecurringStore(t *testing.T) {
	text := func(source string) string { return storedInRounds[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 || !isCause(text(source), d.Causes[0].Site.Line) {
			t.Fatalf("the first cause is not the store: %+v, ruled out: %v", d.Causes, d.Excluded)
		}
		for _, e := range d.Causes[0].Experiments {
			if !e.Control && !e.Expect && e.Undecided == "" && e.Failed > 0 {
				t.Errorf("%s: %d of %d replays failed, which is said to speak against the cause", e.What, e.Failed, e.Runs)
			}
		}
	}
	eachBuild(t, []build{{"slots.c", "gcc", "-O0"}, {"slots.c", "clang", "-O1"}, {"queue.cpp", "g++", "-O0"}, {"queue.cpp", "clang++", "-O1"}}, text, "SIGSEGV", check)
}
