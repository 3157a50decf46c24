// A thread turns in a loop while another ends the process: its last place is in the
// loop, where a replay looks for it at each turn.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int turning;

static void *turn(void *unused)
{
	getppid();
	turning = 1;
	for (volatile unsigned i = 0;; i++)
		;
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, turn, NULL);
	for (int i = 0; i < 50 || !turning; i++)
		usleep(1000);
	abort();
}
