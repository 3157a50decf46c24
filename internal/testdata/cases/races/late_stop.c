/* A worker looks whether the service stops, and then enters it. main sets stopping between the two, as it takes no lock: here the flag
   is what the check is about. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int stopping, served;

static void serve(int n)
{
	usleep(20);
	assert(!stopping);
	served += n;
}

static void *work(void *arg)
{
	for (int i = 0; i < 400; i++) {
		if (stopping)
			break;
		serve(i);
		usleep(20);
	}
	return arg;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, work, NULL);
	usleep(900);
	for (volatile int i = 0; i < 20000; i++)
		;
	stopping = 1;
	pthread_join(t, NULL);
	printf("%d\n", served);
}
