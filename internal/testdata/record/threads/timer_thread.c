// The C library makes threads for itself: a timer's notifications.
// ENDS: SIGABRT
// EVENTS: create 2
#include <assert.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sem_t came;
static int times;

static void notify(union sigval value)
{
	times += value.sival_int;
	free(malloc(50));
	sem_post(&came);
}

int main(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify, .sigev_value.sival_int = 3 };
	struct itimerspec when = { .it_value.tv_nsec = 2000000 };
	timer_t timer;

	assert(!sem_init(&came, 0, 0));
	assert(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &when, NULL));
	while (sem_wait(&came))
		;
	printf("%d\n", times);
	abort();
}
