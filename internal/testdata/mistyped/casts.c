/* One buffer is looked at as two types, whose pointers share a register; the null pointer of main is the cause. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#include <stdio.h>
#include <stdlib.h>

struct header {
	double version;
	long length;
};

struct body {
	long *values;
	long count;
};

__attribute__((noinline, noipa)) static long sum(struct body *b, long factor)
{
	long n = 0;

	for (long i = 0; i < b->count; i++)
		n += b->values[i] * factor;
	return n;
}

__attribute__((noinline, noipa)) static long look(void *at)
{
	struct header *h = at;
	struct body *b = at;
	long n;

	if (h->length > 1000)
		return -1;
	n = sum(b, 3);
	return n + h->length;
}

int main(int argc, char **argv)
{
	struct body b = { NULL, 3 }; /* TWIN */

	(void)argc;
	(void)argv;
	printf("%ld\n", look(&b));
	return 0;
}
