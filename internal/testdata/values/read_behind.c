/* A loop reads one element past the last, and uses a pointer from there. The
 * object itself has a value. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <stdlib.h>

struct row {
	long id;
	long *weight;
};

static long total(const struct row *rows, int n)
{
	long sum = 0;
	for (int i = 0; i <= n; i++)
		sum += *rows[i].weight; // WANT
	return sum;
}

int main(void)
{
	static long weight = 3;
	struct row *rows = malloc(8 * sizeof *rows);
	if (!rows)
		return 1;
	for (int i = 0; i < 8; i++)
		rows[i] = (struct row){ i, &weight };
	printf("%ld\n", total(rows, 8));
	free(rows);
	return 0;
}
