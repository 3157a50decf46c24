// Fails as soon as it has made threads, which have hardly begun by then: some of
// them have no event in the recording.
// Functions are bound when it starts: a thread whose last act is the first call of
// one that is bound then leaves the dynamic linker's traces on its stack.
// FLAGS: -Wl,-z,now
// ENDS: SIGSEGV
// EVENTS: created 8
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 8 };

static int *volatile nowhere;

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, wait_for_ever, NULL);
	*nowhere = 1;
	return 0;
}
