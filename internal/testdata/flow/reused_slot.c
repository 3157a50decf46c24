/* A pointer into a frame that is gone leads to what a function of a library left there, and not to what an earlier call stored there. */
// ENDS: SIGSEGV
// FLAGS: -O0
// WAY: left in take
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct part {
	long weight, spare[6];
};
struct order {
	long amount;
	struct part *what;
	long paid;
};
static struct order *current;

__attribute__((noinline)) static void take(struct part *what)
{
	struct order here;

	here.amount = 1;
	here.what = what;
	here.paid = 0;
	current = &here;
}

__attribute__((noinline)) static void fill(char *to)
{
	for (int i = 0; i < 48; i++)
		to[i] = (char)i;
}

static void *nothing(void *arg) { return arg; }

__attribute__((noinline)) static void weigh(struct part *p) { p->weight = 7; }

int main(void)
{
	pthread_t t;
	struct order *o;

	take(calloc(1, sizeof(struct part)));
	o = current;
	fill(malloc(48));
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&t, NULL, nothing, NULL))
			return 1;
		pthread_join(t, NULL);
	}
	weigh(o->what);
	return 0;
}
