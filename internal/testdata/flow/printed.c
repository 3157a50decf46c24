// A number is written as text and read again; the second number of the text is the index.
//
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: returned in moment
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
int table[16];
__attribute__((noinline)) static long moment(void) { return (long)time(NULL); }
__attribute__((noinline)) static void describe(char *to, size_t size, int width, long length)
{
	snprintf(to, size, "width %d, length %ld.", width, length);
}
__attribute__((noinline)) static int at(const char *text)
{
	return table[strtol(strstr(text, "length ") + 7, NULL, 10) * 64];
}
int main(int argc, char **argv)
{
	char text[80];
	(void)argv;
	describe(text, sizeof(text), argc + 6, moment());
	printf("%d\n", at(text));
	return 0;
}
