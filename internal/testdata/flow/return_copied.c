/* A copy begins before its buffer and runs over its own return address. What it copies is text of one letter, which a fill made. */
// FLAGS: -O0 -fno-stack-protector
// ENDS: SIGSEGV
// WAY: overwrote in report
#include <alloca.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static void report(long before)
{
	char *buffer = alloca(112);
	char text[112];
	char *volatile to = buffer - before;

	memset(buffer, 'A', 111);
	buffer[111] = 0;
	memset(text, 'C', 111);
	text[111] = 0;
	strcpy(to, text);
	puts(to);
}

int main(int argc, char **argv)
{
	(void)argv;
	report(argc > 1 ? 0 : 48);
	return 0;
}
