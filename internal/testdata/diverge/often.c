/* A limit is one letter too low. Passing runs execute the loop more often than a replay stops for. */
// ENDS: exit 1
// FAILS: 7 z
// PASSES: 60000 y | 3 a
// REFUSED: 7 {
#include <stdio.h>
#include <stdlib.h>

#ifdef FIXED
enum { highest = 'z' };
#else
enum { highest = 'y' };
#endif

__attribute__((noinline)) static int folded(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum ^= i;
	return sum;
}

int main(int argc, char **argv)
{
	(void)argc;
	int sum = folded(atoi(argv[1]));
	if (sum < 0 || argv[2][0] > highest) { // DIVERGES
		fprintf(stderr, "refused\n");
		exit(1);
	}
	printf("%d\n", sum);
	return 0;
}
