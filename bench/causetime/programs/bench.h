/* What the programs share: work without events, and events. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local int table[1 << 16];

/* Some 20 ms. */
static unsigned long compute(uint64_t state)
{
	unsigned long sum = 0;

	for (int i = 0; i < 10000000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		table[state & 0xffff] += (int)(state >> 40);
		sum += (unsigned long)table[(state >> 16) & 0xffff];
	}
	return sum;
}

static void note(long number, unsigned long sum)
{
	FILE *f = fopen("/dev/null", "w");

	if (!f)
		exit(2);
	fprintf(f, "%ld %lu\n", number, sum);
	fclose(f);
}
