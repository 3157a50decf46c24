/* Objects of small and odd sizes are cleared whole, again and again, and then a number that was read decides. Some libraries clear them by
 * one store of a whole vector, under a mask. */
// ENDS: exit 4
// DECIDED: nothing
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct set {
	unsigned size;
	unsigned char *bits;
};

__attribute__((noinline)) static struct set *new_set(unsigned size)
{
	struct set *s = malloc(sizeof *s);
	s->size = size;
	s->bits = malloc(size);
	return s;
}

__attribute__((noinline)) static void clear(struct set *s)
{
	memset(s->bits, 0, s->size);
}

__attribute__((noinline)) static int has(const struct set *s, unsigned n)
{
	return s->bits[n % s->size] != 0;
}

int main(void)
{
	volatile unsigned sizes[] = { 1, 3, 4, 5, 7, 13, 21, 29, 31 };
	int found = 0;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct set *s = new_set(sizes[i]);
		for (unsigned n = 0; n < 3; n++) {
			clear(s);
			s->bits[n % s->size] = 1;
			found += has(s, 2);
		}
	}
	if (found != 10) {
		fprintf(stderr, "%d sets have it\n", found);
		return 4;
	}
	return 0;
}
