// Threads that spin on variables: one waits so for a store after a sleep, and
// the message that it gets is complete if it looks late enough.
// FLAGS: -O1
// ENDS: exit 0
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 8

static volatile int full, text, taken;

static void *sends(void *argument)
{
	(void)argument;
	sleep(2);
	for (int i = 1; i <= ROUNDS; i++) {
		full = i;
		text = i; /* too late */
		while (taken != i)
			;
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sends, NULL);
	for (int i = 1; i <= ROUNDS; i++) {
		while (full != i)
			;
		if (text != i)
			abort();
		taken = i;
	}
	pthread_join(thread, NULL);
	return 0;
}
