/* A function is handed the first array of a struct in its caller's frame, and stores one element too many: into the member after it. Another
 * one is handed the struct, and may use all of it. */
// ENDS: SIGSEGV
// WAY: outside in sum
#include <stdio.h>

struct scratch {
	int totals[5];
	int best, worst;
};

int inputs = 5;
char pages[64][1 << 20];

__attribute__((noinline)) static void clear(struct scratch *s)
{
	int *totals = s->totals;

	for (int i = 0; i < 5; i++)
		totals[i] = 0;
	s->best = 3;
	s->worst = 4;
}

__attribute__((noinline)) static void sum(int *totals, int n)
{
	for (int i = 0; i < n; i++)
		totals[i] = 123456 + i;
}

__attribute__((noinline)) static int best(void)
{
	struct scratch s;

	clear(&s);
	sum(s.totals, inputs + 1);
	return s.best + (s.worst == 5);
}

int main(void)
{
	printf("%d\n", pages[best()][0]);
	return 0;
}
