// Threads ask the processor which one they run on: by leaf 1 of cpuid, whose upper byte of ebx is the number of
// the processor, and with the argument "extended" by leaf 0xb, whose edx is.
#include <cpuid.h>
#include <pthread.h>
#include <stdlib.h>

static unsigned number;

static void *ask(void *extended)
{
	unsigned a, b, c, d;

	if (extended) {
		__cpuid_count(0xb, 0, a, b, c, d);
		number = d;
	} else {
		__cpuid(1, a, b, c, d);
		number = b >> 24;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	pthread_create(&thread, NULL, ask, argc > 1 ? argv : NULL);
	pthread_join(thread, NULL);
	abort();
}
