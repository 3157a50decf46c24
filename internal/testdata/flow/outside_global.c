/* A function of a library writes past the end of a global array, over the pointer after it; the length was computed. */
// ENDS: SIGSEGV
// WAY: constant in size
#pragma GCC diagnostic ignored "-Wattributes"
#include <stdio.h>
#include <string.h>

static const char *volatile before;
static struct {
	unsigned char bytes[32];
} buffer;
static const char *volatile after;

__attribute__((noinline, noipa)) static unsigned long size(int of)
{
	return of > 0 ? 128 : 32;
}

__attribute__((noinline)) static void clear(unsigned long n)
{
	memset(&buffer, 0x55, n);
}

int main(int argc, char **argv)
{
	const char *volatile *next = (unsigned char *)&after > buffer.bytes ? &after : &before; /* the one after the buffer */

	before = after = argv[0];
	clear(size(argc));
	printf("%c\n", (*next)[0]);
	return 0;
}
