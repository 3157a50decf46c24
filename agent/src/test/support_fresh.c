/* Prints bytes of fresh memory of each kind: of small, large, aligned, grown and moved objects, and of calloc, which is 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned at(const void *p, size_t n)
{
	__asm__("" : "+r"(p) : : "memory"); /* the compiler knows that nothing was stored */
	return ((const unsigned char *)p)[n];
}

int main(void)
{
	char *small = malloc(40), *large = malloc(3 << 20), *aligned = aligned_alloc(64, 640), *empty = malloc(0);
	char *grown = malloc(100), *moved = malloc(8), *huge = malloc(1 << 20), *zero = calloc(5, 8), *zeros = calloc(3, 1 << 20);

	memset(grown, 1, 100);
	memset(moved, 2, 8);
	memset(huge, 3, 1 << 20);
	grown = realloc(grown, 104);
	moved = realloc(moved, 4000);
	huge = realloc(huge, 2 << 20);
	printf("%x %x %x %x", at(small, 39), at(large, 0), at(large, (3 << 20) - 1), at(aligned, 639));
	printf(" %x %x %x %x", at(grown, 99), at(grown, 103), at(moved, 7), at(moved, 3999));
	printf(" %x %x %x %x %x %d\n", at(huge, (1 << 20) - 1), at(huge, 1 << 20), at(zero, 39), at(zeros, 0), at(zeros, (3 << 20) - 1), empty != NULL);
	return 0;
}
