/* Two pointers are swapped: each leads to a struct of another type. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#include <stdio.h>
#include <string.h>

struct frame {
	const char *text;
	long depth;
	const char *here;
};

struct settings {
	void *(*allocate)(unsigned long);
	long limit;
	const char *start;
	long matches;
};

static volatile int last;

__attribute__((noinline, noipa)) static int compare(struct frame *f, struct settings *s, int length)
{
	const char *here = f->here;

	if (s->limit < length)
		return -1;
	for (int i = 0; i < length; i++)
		if (here[i] != f->text[i])
			return 1;
	return 0;
}

__attribute__((noinline, noipa)) static int match(const char *subject, int again)
{
	struct settings set;
	struct settings *s = &set;
	struct frame first;
	struct frame *f = &first;

	memset(s, 0, sizeof *s);
	s->limit = 100;
	s->start = again ? NULL : subject;
	f->text = f->here = subject;
	f->depth = 100;
	if (again) {
		last = compare(s, f, 3); /* BUG */
		return 0;
	}
	last = compare(f, s, 2);
	return last;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", match("abcabc", 0));
	printf("%d\n", match("abcabc", argc));
	return 0;
}
