/* A thread ends the process while main has no turn, in the middle of a change that no lock protects. The thread stores to main's stack
 * before, so that the core does not show how that was when main's turn ended. */
// FLAGS: -O1 -pthread
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

struct pair {
	volatile unsigned long first, second, seen;
};

static unsigned long mix(unsigned long x)
{
	for (int i = 0; i < 200; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static void *compare(void *of)
{
	struct pair *p = of;

	while (p->first == p->second)
		;
	p->seen = p->first;
	abort();
}

int main(void)
{
	struct pair p = { 0 };
	pthread_t t;

	pthread_create(&t, NULL, compare, &p);
	for (unsigned long i = 0;; i++) {
		p.first = mix(i);
		p.second = mix(i);
	}
}
