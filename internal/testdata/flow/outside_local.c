/* A function writes past the end of its caller's array, over a pointer in another frame; the length was computed. */
// ENDS: SIGSEGV
// WAY: constant in size
#pragma GCC diagnostic ignored "-Wattributes"
#include <stdio.h>
#include <string.h>

struct line {
	char text[24];
};

__attribute__((noinline)) static void put(struct line *to, const char *text, unsigned long length)
{
	char *at = to->text;

	for (unsigned long i = 0; i < length; i++) {
		at[i] = text[i] | 0x40;
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noinline, noipa)) static unsigned long size(int of)
{
	return of > 0 ? 256 : 24;
}

__attribute__((noinline)) static int keep(const char *volatile *next, const char *text, int of)
{
	struct line line = { "" };

	put(&line, text, 3);
	put(&line, text, size(of));
	return (*next)[0] + line.text[0];
}

static char text[256];

int main(int argc, char **argv)
{
	const char *volatile next = argv[0];

	memset(text, '0', sizeof text);
	printf("%d\n", keep(&next, text, argc));
	return 0;
}
