/* The length is read past the end of a message on the heap. */
// ENDS: exit 4
// DECIDED: outside in length
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static unsigned length(const unsigned char *message, unsigned at)
{
	return message[at] << 8 | message[at + 1];
}

__attribute__((noinline)) static void check(const unsigned char *message, unsigned at)
{
	if (length(message, at) > 1000) {
		fputs("the message is too long\n", stderr);
		exit(4);
	}
}

int main(void)
{
	unsigned char *message = calloc(1, 13);
	memcpy(message, "\0\4abcd\0\5efghi", 13);
	check(message, 0);
	check(message, 6);
	check(message, 13);
	free(message);
	return 0;
}
