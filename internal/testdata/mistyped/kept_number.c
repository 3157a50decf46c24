/* A function keeps what it is given and returns; a number is kept for a pointer, which another function reads later. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wint-conversion"
#include <stdio.h>
#include <string.h>

static const char *at;
static size_t left;

__attribute__((noinline)) static void begin(const char *text, size_t length)
{
	at = text;
	left = length;
}

__attribute__((noinline)) static int next(void)
{
	return left-- > 0 ? *at++ : -1;
}

__attribute__((noinline)) static int words(const char *text, size_t length)
{
	int n = 0;
	begin(length, text); /* BUG */
	for (int c; (c = next()) >= 0;)
		n += c == ' ';
	return n;
}

int main(int argc, char **argv)
{
	const char *text = argc > 1 ? argv[1] : "one two";
	printf("%d\n", words(text, strlen(text)));
	return 0;
}
