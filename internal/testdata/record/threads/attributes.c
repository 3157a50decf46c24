// Attributes: sizes, guards, the program's own stacks, large ones, what
// pthread_getattr_np says, errors.
// ENDS: SIGABRT
// EVENTS: create 8
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct want {
	void *low;
	size_t size, guard;
	int detached;
};

static void *look(void *argument)
{
	const struct want *want = argument;
	pthread_attr_t attr;
	size_t size, guard;
	int state;
	void *low;
	char here;

	assert(!pthread_getattr_np(pthread_self(), &attr));
	assert(!pthread_attr_getstack(&attr, &low, &size) && !pthread_attr_getguardsize(&attr, &guard) &&
	       !pthread_attr_getdetachstate(&attr, &state));
	assert(size == want->size && state == want->detached);
	assert(want->low ? low == want->low : guard == want->guard);
	assert(&here > (char *)low && &here < (char *)low + size);
	memset((char *)low + size / 2, 1, 64);
	pthread_attr_destroy(&attr);
	return argument;
}

static void try(const pthread_attr_t *attr, struct want *want)
{
	pthread_t thread;
	void *value;

	assert(!pthread_create(&thread, attr, look, want));
	assert(!pthread_join(thread, &value) && value == want);
	/* Whoever gets the stack next finds nothing of the last one. */
	assert(!pthread_create(&thread, attr, look, want));
	assert(!pthread_join(thread, &value) && value == want);
}

int main(void)
{
	struct want want = { .size = 8 << 20, .guard = 4096 };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, want.size);
	try(&attr, &want);
	want.size = 100000;
	want.guard = 16384;
	assert(!pthread_attr_setstacksize(&attr, want.size) && !pthread_attr_setguardsize(&attr, want.guard));
	try(&attr, &want);
	want.size = 40 << 20; /* more than a slot of the engine's */
	assert(!pthread_attr_setstacksize(&attr, want.size));
	try(&attr, &want);
	want.size = 1 << 20;
	want.low = mmap(NULL, want.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(want.low != MAP_FAILED && !pthread_attr_setstack(&attr, want.low, want.size));
	try(&attr, &want);
	assert(pthread_join(pthread_self(), NULL) == EDEADLK);
	pthread_attr_destroy(&attr);
	printf("attributes\n");
	abort();
}
