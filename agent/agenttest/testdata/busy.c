/* Threads that allocate, write, resize and free for ever, across threads, so
 * that whoever stops them finds them in the middle of a call. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 4096

static char *shared[SLOTS];

static void *work(void *arg)
{
	uint64_t state = (uintptr_t)arg * 0x9e3779b97f4a7c15ull + 1;

	for (;;) {
		uint64_t size;
		char *p;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		size = state >> 33 & 7 ? state >> 40 & 511 : state >> 40 & 0x3ffff;
		p = __atomic_exchange_n(&shared[state >> 20 & (SLOTS - 1)], NULL, __ATOMIC_ACQ_REL);
		if (p && state >> 60 & 1) {
			p = realloc(p, size);
		} else {
			free(p);
			p = state >> 61 & 1 ? calloc(1, size) : malloc(size);
		}
		memset(p, 'w', size);
		free(__atomic_exchange_n(&shared[state >> 40 & (SLOTS - 1)], p, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread, NULL, work, (void *)i);
	puts("running");
	fflush(stdout);
	alarm(120); /* should the one who stops it be gone */
	work((void *)7);
}
