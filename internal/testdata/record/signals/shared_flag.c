// A timer's handler and an input's share a flag: the timer's tests it and then
// takes the item; the input's, coming in between, has taken it.
// ENDS: SIGABRT
// EVENTS: signal 2
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int value;
static int *volatile item;
static volatile int pending, failed;
static volatile unsigned long work;

static void on_timer(int signal)
{
	(void)signal;
	if (!pending)
		return;
	for (int i = 0; i < 200000; i++)
		work++;
	if (!item)
		failed = 1;
	item = NULL;
	pending = 0;
}

static void on_input(int signal)
{
	(void)signal;
	if (!pending)
		return;
	item = NULL;
	pending = 0;
}

int main(void)
{
	struct sigaction timer = { .sa_handler = on_timer }, input = { .sa_handler = on_input };
	struct itimerval real = { { 0, 3000 }, { 0, 3000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGIO };
	struct itimerspec other = { { 0, 2300000 }, { 0, 2300000 } };
	timer_t id;

	sigaction(SIGALRM, &timer, NULL);
	sigaction(SIGIO, &input, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &id) || timer_settime(id, 0, &other, NULL))
		return 1;
	setitimer(ITIMER_REAL, &real, NULL);
	while (!failed) {
		if (!pending) {
			item = &value;
			pending = 1;
		}
		pause();
	}
	abort();
}
