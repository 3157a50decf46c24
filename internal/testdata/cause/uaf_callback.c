// Timers in a list: one whose callback cancels it is gone when the walk wants to
// know which comes next.
// CAUSE kind=use-after-free
// FAILS signal=SIGSEGV says="no address"
// RUNS fail: 3
// RUNS pass: 9
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct timer {
	struct timer *next;
	int number, due;
	void (*expired)(struct timer *);
};

static struct timer *timers;
static int fired;

static void add(int number, int due, void (*expired)(struct timer *))
{
	struct timer *t = malloc(sizeof(*t)); // OBJECT

	t->number = number;
	t->due = due;
	t->expired = expired;
	t->next = timers;
	timers = t;
}

static void cancel(struct timer *t)
{
	struct timer **p = &timers;

	while (*p && *p != t)
		p = &(*p)->next;
	if (*p) {
		*p = t->next;
		free(t); // BUG 1
	}
}

static void repeat(struct timer *t)
{
	t->due += 2;
	fired++;
}

static void once(struct timer *t)
{
	fired++;
	cancel(t);
}

static void run(int now)
{
#ifdef FIXED
	struct timer *next;

	for (struct timer *t = timers; t; t = next) {
		next = t->next;
#else
	for (struct timer *t = timers; t; t = t->next) { // BUG 2
#endif
		if (t->due <= now)
			t->expired(t);
	}
}

int main(int argc, char **argv)
{
	int due = argc > 1 ? atoi(argv[1]) : 9;

	add(1, 1, repeat);
	add(2, due, once);
	add(3, 2, repeat);
	for (int now = 0; now < 6; now++)
		run(now);
	printf("%d fired\n", fired);
	return 0;
}
