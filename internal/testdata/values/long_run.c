// A bad number is stored early. A long computation without any event follows, then the numbers are sorted, and the largest is an
// index. The bad one has been in many places by then.
//
// FLAGS: -O2
// ENDS: SIGSEGV
#include <stdio.h>
static volatile int numbers[64];
static volatile long weights[64];
__attribute__((noinline)) static void prepare(int bad)
{
	for (int i = 0; i < 64; i++)
		numbers[i] = i % 50;
	numbers[bad] = 500000000; // WANT
}
__attribute__((noinline)) static unsigned long chew(long n)
{
	unsigned long seed = 1;
	while (n--)
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return seed;
}
__attribute__((noinline)) static long heaviest(int from)
{
	for (int n = 63; n > from; n--)
		for (int i = from; i < n; i++)
			if (numbers[i] > numbers[i + 1]) {
				int other = numbers[i];
				numbers[i] = numbers[i + 1];
				numbers[i + 1] = other;
			}
	return weights[numbers[63]];
}
int main(int argc, char **argv)
{
	(void)argv;
	prepare(4 + argc);
	unsigned long x = chew(5000000);
	printf("%lu %ld\n", x, heaviest(argc));
	return 0;
}
