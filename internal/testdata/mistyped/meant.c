/* Each argument suits its parameter, though the types differ: the null pointer of main is the cause. */
// ENDS: SIGSEGV
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
	int kind;
	struct object *next;
};
struct button {
	struct object base;
	const char *label;
};
struct address {
	unsigned short family;
	char data[14];
};
struct address_of_port {
	unsigned short family;
	unsigned short port;
	unsigned host;
};

__attribute__((noinline)) static long look(struct object *o, uintptr_t handle, const struct address *a, void *any, long *counts)
{
	long n = *(long *)handle + a->family + *(int *)any + counts[1];

	return n + o->next->kind;
}

int main(int argc, char **argv)
{
	struct button b = { { 1, 0 }, argv[0] };
	struct address_of_port at = { 2, 80, 1 };
	long total = 5, counts[3] = { 1, 2, 3 };

	b.base.next = argc > 5 ? &b.base : NULL; /* CAUSE */
	printf("%ld\n", look((struct object *)&b, (uintptr_t)&total, (struct address *)&at, &argc, counts));
	return 0;
}
