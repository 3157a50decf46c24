/* A loop goes one step too far and overwrites half of a pointer, which printf gets and
 * keeps on its own stack: the bad value is the program's, not what printf stored. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <stdlib.h>

struct pool {
	int ids[6];
	char *label;
};

static void fill(struct pool *p, int n)
{
	for (int i = 0; i <= n; i++)
		p->ids[i] = 100 + i; // WANT
}

int main(void)
{
	struct pool *p = malloc(sizeof *p);
	if (!p)
		return 1;
	p->label = "pool";
	fill(p, 6);
	printf("%s %d\n", p->label, p->ids[2]);
	free(p);
	return 0;
}
