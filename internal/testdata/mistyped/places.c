/* The addresses of two variables are swapped: one is a number of 4 bytes, the other a pointer. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#include <stdio.h>
#include <stdlib.h>

static char *text;
static unsigned size, other = 7;

__attribute__((noinline, noipa)) static int resize(unsigned *to)
{
	*to = 512;
	return 0;
}

__attribute__((noinline, noipa)) static int put(char **buffer, unsigned *length, int c, unsigned at)
{
	if (at >= *length)
		return -1;
	(*buffer)[at] = c;
	return 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	text = malloc(512);
	resize(&size);
	if (put(&text, &size, 'a', 0) < 0)
		return 1;
	for (unsigned i = 0; i < (unsigned)argc; i++)
		if (put(&size, &text, 'b', i) < 0) /* BUG */
			return 1;
	printf("%s %u\n", text, other);
	return 0;
}
