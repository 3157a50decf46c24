// A thread that waits for another one.
//
// ENDS: exit 4
// EVENTS: create 1
// EVENTS: join 1
#include <pthread.h>
#include <unistd.h>

static void *work(void *argument)
{
	usleep(1000);
	return argument;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	return 4;
}
