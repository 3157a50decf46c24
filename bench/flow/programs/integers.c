// A loop that computes with integers.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long rounds = atol(argv[argc - 1]);
	unsigned long sum = 0;

	for (long i = 0; i < rounds * 1000; i++)
		sum += (sum ^ i) * 31 % 1021 + (i % 3 == 0 ? (long)(sum >> 3) : i);
	printf("%lu\n", sum);
	return 0;
}
