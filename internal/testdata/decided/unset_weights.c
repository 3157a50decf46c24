/* A loop sets every second weight of an array on the heap only. Their sum is not what it should be. */
// ENDS: exit 3
// DECIDED: unset in sum
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void prepare(int *weights, int n)
{
	for (int i = 0; i < n; i += 2)
		weights[i] = 1;
}

__attribute__((noinline)) static int sum(const int *weights, int n)
{
	int all = 0;
	for (int i = 0; i < n; i++)
		all += weights[i];
	return all;
}

int main(void)
{
	int *weights = malloc(16 * sizeof *weights);
	prepare(weights, 16);
	int all = sum(weights, 16);
	if (all != 16) {
		fprintf(stderr, "the sum is %d\n", all);
		return 3;
	}
	free(weights);
	return 0;
}
