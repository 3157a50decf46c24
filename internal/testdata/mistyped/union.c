/* A member of a union is passed, and another one comes first in the union's type. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#include <stdio.h>

struct number {
	double value;
	long digits;
};

struct text {
	const char *bytes;
	long length;
};

struct item {
	int kind;
	union {
		struct number *number;
		struct text *text;
		long words[2];
	} of;
};

__attribute__((noinline, noipa)) static long show(struct text *t, long from)
{
	return t->bytes[from];
}

__attribute__((noinline, noipa)) static long visit(struct item *i)
{
	if (i->kind == 1)
		return show(i->of.text, 0) + i->kind; /* TWIN */
	return i->of.number->digits;
}

int main(void)
{
	struct text t = { NULL, 3 };
	struct item i = { 1, { .text = &t } };

	printf("%ld\n", visit(&i));
	return 0;
}
