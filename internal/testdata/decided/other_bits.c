/* Correct code that tests the one bit of a word that was set, by several ways. */
// ENDS: exit 3
// DECIDED: nothing
#include <stdio.h>
#include <stdlib.h>

struct frame {
	unsigned char flags;
	unsigned words[2];
};

__attribute__((noinline)) static void mark(struct frame *f, int number)
{
	f->flags |= 4;
	f->words[number & 1] |= 1u << 31;
	f->words[1 - (number & 1)] |= 0x40;
}

__attribute__((noinline)) static int marked(const struct frame *f)
{
	return (f->flags & 4) != 0 && (int)f->words[0] < 0 && (f->words[1] >> 6 & 1) != 0;
}

int main(void)
{
	struct frame *f = malloc(sizeof *f);
	mark(f, 2);
	if (marked(f)) {
		fprintf(stderr, "marked\n");
		return 3;
	}
	return 0;
}
