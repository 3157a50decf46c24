/* The index that a bad value was made of was counted up in a loop: that is one step of
 * the way back, however often it went round. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <stdlib.h>

static int *at(int *base, int i)
{
	return base + i;
}

struct board {
	int cells[12];
	int *best;
};

static void clear(struct board *b, int n)
{
	for (int i = 0; i < n; i++)
		*at(b->cells, i) = i * 3; // WANT
}

int main(void)
{
	int spare = 9;
	struct board b = { .best = &spare };
	clear(&b, 14);
	printf("%d %d\n", *b.best, b.cells[1]);
	return 0;
}
