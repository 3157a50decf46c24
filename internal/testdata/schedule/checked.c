// A buffer is looked at and used, and another thread takes it away in between, as often as it gives it.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

static char *volatile buffer;
static volatile int used;
static char text[8];

static void wait(void)
{
	for (volatile int i = 0; i < 20; i++)
		;
}

static void *closes(void *argument)
{
	for (int i = 0; i < 2000; i++) {
		buffer = text;
		wait();
		buffer = NULL;
		wait();
	}
	return argument;
}

static void *uses(void *argument)
{
	for (int i = 0; i < 20000; i++) {
		if (buffer) {
			used++;
			if (!buffer) /* BUG */
				abort();
		}
	}
	return argument;
}

int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, closes, NULL);
	pthread_create(&threads[1], NULL, uses, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
