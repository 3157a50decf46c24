// LOST 2 8: two rings, one of them with a tail that does not lead back.
#include "leaks.h"
struct link { struct link *next, *previous; long payload[7]; };
struct link *volatile held;
__attribute__((noinline)) static struct link *ring(int n)
{
	struct link *first = NULL, *last = NULL;
	for (int i = 0; i < n; i++) {
		struct link *x = calloc(1, sizeof *x);
		if (!first)
			first = last = x;
		x->previous = last, last->next = x;
		x->next = first, first->previous = x;
		last = x;
	}
	return first;
}
__attribute__((noinline)) static void tail(struct link *r)
{
	long **x = calloc(1, 200);
	x[3] = calloc(1, 300);
	memcpy(&r->payload[2], &x, sizeof x);
}
__attribute__((noinline)) static void drop(void)
{
	lose(ring(3));
	struct link *r = ring(5);
	tail(r);
	lose(r);
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	held = ring(9);
	drop();
	finish();
}
