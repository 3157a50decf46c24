/* As narrow_number.c, where the compiler puts the function that uses the address into the one that makes it. */
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: outside in append
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int grow(char **text, int *size, int least)
{
	if (*size >= least)
		return 1;
	char *more = realloc(*text, (size_t)least);
	if (!more)
		return 0;
	*size = least;
	*text = more;
	return 1;
}

__attribute__((always_inline)) static inline int append(char **text, int *size, int at, int c)
{
	if (!grow(text, size, at + 1))
		return -1;
	(*text)[at] = (char)c;
	return at + 1;
}

int main(int argc, char **argv)
{
	static int size;
	static char *text;

	(void)argv;
	int at = append(&text, &size, argc, 'x');
	at = append((void *)&size, (void *)&text, at, 'y');
	printf("%d\n", at);
	return 0;
}
