/* Two arguments are exchanged: what takes a pointer from its parameter was handed the address of a number, which is smaller. */
// ENDS: SIGSEGV
// WAY: outside in append
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int append(char **text, int *size, int c)
{
	if (c == 0)
		return *size;
	(*text)[3] = (char)c;
	return *size + 1;
}

__attribute__((noinline)) static int add(char **text, int *size, int of)
{
	if (of > 1)
		return append(text, size, 'x');
	return append((void *)size, (void *)text, 'y');
}

int main(int argc, char **argv)
{
	static int size = 512;
	static char *text;

	(void)argv;
	text = malloc((size_t)size);
	printf("%d\n", add(&text, &size, argc));
	return 0;
}
