// Two threads that compute for long after their last events: calls, string instructions, conditional moves.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char from[700], to[700];
volatile unsigned long result[2];

static __attribute__((noinline)) unsigned long largest(unsigned long a, unsigned long b) { return a > b ? a : b; }

static __attribute__((noinline)) unsigned long mix(unsigned long n, int depth)
{
	return depth ? largest(mix(n * 31 + depth, depth - 1), n) ^ n : n;
}

static void copy(unsigned long n)
{
	char *d = to, *s = from;
	unsigned long count = n % sizeof to;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
}

static void *work(void *argument)
{
	unsigned long *out = argument, n = 1;

	for (int i = 0; i < 300; i++) {
		n = mix(n, 6);
		if (i % 100 == 0)
			copy(n);
	}
	*out = n;
	return 0;
}

int main(void)
{
	pthread_t other;

	memset(from, 1, sizeof from);
	pthread_create(&other, 0, work, (void *)&result[1]);
	work((void *)&result[0]);
	pthread_join(other, 0);
	work((void *)&result[0]);
	abort();
}
