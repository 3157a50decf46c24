// A table of measurements that is smoothed in place: each value looks at its
// successor, and so does the last one.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: 7 3
// RUNS pass: 7 0
#include <stdio.h>
#include <stdlib.h>

struct series {
	int count;
	long *values;
};

static struct series *measure(int count)
{
	struct series *s = malloc(sizeof(*s));
	unsigned seed = 17;

	s->count = count;
	s->values = malloc((size_t)count * sizeof(*s->values)); // OBJECT
	for (int i = 0; i < count; i++) {
		seed = seed * 1103515245 + 12345;
		s->values[i] = seed >> 16 & 1023;
	}
	return s;
}

/* Moves half of the difference to the successor. */
static void smooth(struct series *s)
{
#ifdef FIXED
	for (int i = 0; i < s->count - 1; i++) {
#else
	for (int i = 0; i < s->count; i++) {
#endif
		long half = (s->values[i] - s->values[i + 1]) / 2;

		s->values[i] -= half;
		s->values[i + 1] += half; // BUG
	}
}

static long spread(const struct series *s)
{
	long low = s->values[0], high = low;

	for (int i = 1; i < s->count; i++) {
		if (s->values[i] < low)
			low = s->values[i];
		if (s->values[i] > high)
			high = s->values[i];
	}
	return high - low;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 7, rounds = argc > 2 ? atoi(argv[2]) : 0;
	struct series *s = measure(count);

	for (int i = 0; i < rounds; i++)
		smooth(s);
	printf("spread %ld\n", spread(s));
	free(s->values);
	free(s);
	return 0;
}
