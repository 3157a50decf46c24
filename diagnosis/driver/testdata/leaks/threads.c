// LOST 5 5: what ended threads had is lost; what running ones have on their stacks and in thread-local memory is not.
#include "leaks.h"
#include <pthread.h>
static __thread void *volatile mine;
static pthread_key_t key;
static pthread_barrier_t ready;
__attribute__((noinline)) static void *chain(void)
{
	void **p = calloc(1, 90);
	p[2] = calloc(1, 45);
	return p;
}
static void *running(void *arg)
{
	void *volatile local[3] = {malloc(64), malloc(900), malloc(200000)};
	mine = chain();
	pthread_setspecific(key, chain());
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return local[(long)arg];
}
static void *ended(void *arg)
{
	mine = chain();
	lose(mine);
	mine = NULL;
	wipe();
	return arg;
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	pthread_key_create(&key, NULL);
	pthread_barrier_init(&ready, NULL, 4);
	pthread_t t;
	for (long i = 0; i < 3; i++)
		pthread_create(&t, NULL, running, (void *)i);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 5; i++) {
		pthread_create(&t, NULL, ended, NULL);
		pthread_join(t, NULL);
	}
	finish();
}
