// Objects are allocated and freed, a few instructions apart.
#include <stdio.h>
#include <stdlib.h>

enum { OBJECTS = 64 };

int main(int argc, char **argv)
{
	long rounds = atol(argv[argc - 1]), sum = 0;
	long *object[OBJECTS] = { 0 };

	for (long i = 0; i < rounds * 10; i++) {
		long **o = &object[i * 7 % OBJECTS];

		if (*o)
			sum += **o;
		free(*o);
		*o = malloc(16 + i % 200);
		**o = i;
	}
	printf("%ld\n", sum);
	return 0;
}
