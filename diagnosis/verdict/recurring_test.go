package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// recurringPrograms give a lock back between a look and what is done for it, many times: a run that passes where the recorded one failed is likely
// to fail a little later.
var recurringPrograms = map[string]string{"slots.c": `#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
enum { SLOTS = 4 };
struct entry { long hits; };
static struct slot { pthread_mutex_t lock; struct entry *entry; } slots[SLOTS];
static void note(char c)
{
	if (write(null, &c, 0) != 0)
		_exit(1);
	usleep(20);
}
static void touch(struct slot *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->entry) { // BUG
		s->entry = calloc(1, sizeof *s->entry);
		pthread_mutex_unlock(&s->lock);
		return;
	}
	pthread_mutex_unlock(&s->lock);
	note('t');
	pthread_mutex_lock(&s->lock);
	s->entry->hits++;
	pthread_mutex_unlock(&s->lock);
}
static void *use(void *unused)
{
	for (int i = 0; i < 160; i++)
		touch(&slots[i % SLOTS]);
	return unused;
}
static void *sweep(void *unused)
{
	for (int i = 0; i < 60; i++) {
		usleep(70);
		struct slot *s = &slots[i % SLOTS];
		pthread_mutex_lock(&s->lock);
		struct entry *old = s->entry;
		s->entry = NULL;
		pthread_mutex_unlock(&s->lock);
		free(old);
	}
	return unused;
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	pthread_create(&t[0], NULL, use, NULL);
	pthread_create(&t[1], NULL, use, NULL);
	pthread_create(&t[2], NULL, sweep, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
`, "desk.cpp": `#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>
struct Desk {
	std::mutex door;
	int waiting = 0;
	long served = 0;
};
static Desk desk;
static void arrive()
{
	for (int i = 0; i < 80; i++) {
		{
			std::lock_guard<std::mutex> in(desk.door);
			if (desk.waiting < 2)
				desk.waiting++;
		}
		usleep(40);
	}
}
static bool somebody()
{
	std::lock_guard<std::mutex> in(desk.door);
	return desk.waiting > 0; // BUG
}
static void serve()
{
	for (int i = 0; i < 120; i++) {
		if (!somebody()) {
			usleep(30);
			continue;
		}
		if (write(1, "", 0) != 0)
			_exit(1);
		usleep(20);
		std::lock_guard<std::mutex> in(desk.door);
		if (desk.waiting == 0)
			abort();
		desk.waiting--;
		desk.served++;
	}
}
int main()
{
	std::thread a(arrive), b(serve), c(serve);
	a.join();
	b.join();
	c.join();
	std::printf("%ld\n", desk.served);
}
`}

// TestRecurringOrder: that the run fails later, at another arrival, is no reason to rule an order out without which it came past the recorded failure.
func TestRecurringOrder(t *testing.T) {
	crashtest.TracesAccesses(t)
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		bug := lineOf(recurringPrograms[source], "// BUG")
		for _, c := range slices.Concat(d.Causes, d.Leads) {
			if c.Interleaving != nil && len(c.Interleaving.Failing) > 2 && c.Site != nil && c.Site.Line == bug {
				return
			}
		}
		t.Errorf("causes %+v; leads %+v; excluded %+v", d.Causes, d.Leads, d.Excluded)
	}
	text := func(source string) string { return recurringPrograms[source] }
	eachBuild(t, []build{{"slots.c", "gcc", "-O1"}, {"slots.c", "clang", "-O2"}}, text, "SIGSEGV", check, "-pthread")
	eachBuild(t, []build{{"desk.cpp", "g++", "-O0"}, {"desk.cpp", "clang++", "-O2"}}, text, "SIGABRT", check, "-pthread")
}
