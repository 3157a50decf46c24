/* A number is passed for a pointer: the arguments are swapped, as a compiler only warns of. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wint-conversion"
#include <stdio.h>
#include <stdlib.h>

struct section {
	const char *name;
	long length;
	struct section *next;
};

static int emitted;

__attribute__((noinline, noipa)) static long width(int kind)
{
	return kind > 2 ? 8 : 4;
}

__attribute__((noinline, noipa)) static void add(struct section *s, long size, int segment)
{
	s->length += size;
	if (segment > 3)
		s->next = NULL;
}

__attribute__((noinline, noipa)) static void emit(struct section *s, int kind)
{
	long size = width(kind);

	add(s, size, kind);
	emitted++;
}

__attribute__((noinline, noipa)) static void emit_last(struct section *s, int kind)
{
	long size = width(kind);

	add(size, s, kind); /* BUG */
	emitted++;
}

int main(int argc, char **argv)
{
	struct section *s = calloc(1, sizeof *s);

	s->name = argv[0];
	emit(s, 1);
	emit_last(s, argc + 3);
	printf("%ld\n", s->length);
	return 0;
}
