/* gcc -g -O0, -O1: bytes are shifted up in a table, two places too far, over the number after it; that is an index later. What the bytes
   were does not matter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct coder {
	unsigned char codes[16];
	int first;
	long sum;
};

static void __attribute__((noinline)) shift(struct coder *c, int from, int places)
{
	for (int i = 0; i < places; i++)
		c->codes[from + i] = c->codes[i] + 3;        /* FLAW: from + places is 20 */
}

static int __attribute__((noinline)) code(struct coder *c)
{
	return c->codes[c->first] + c->codes[0];
}

int main(int argc, char **argv)
{
	struct coder *c = calloc(1, sizeof *c);
	memset(c->codes, argc + 16, 16);
	shift(c, 4, argc > 1 ? 12 : 16);
	printf("%d\n", code(c));
	return 0;
}
