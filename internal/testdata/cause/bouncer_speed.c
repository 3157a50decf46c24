// A ball whose speed the player changes, after the game bouncer 1.0. The timer
// takes a request over while the input is still being looked at, so one of the
// two counts is short.
// CAUSE kind=signal-handler-race variable=is_changed pattern=RWR
// FAILS signal=SIGABRT says="requests"
// RUNS fail: 30
// RUNS pass: 3
// RUNS pass: 2
// INPUT: f
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

enum { WIDTH = 60, FASTEST = 10 };

static int delay = 5, next_delay = 5;
static volatile sig_atomic_t is_changed;
static int requests, adjustments;
static int position, direction = 1;

static void on_input(int key)
{
	if (key == 'f' && next_delay > 1)
		next_delay--;
	else if (key == 's' && next_delay < FASTEST)
		next_delay++;
	requests++;
	is_changed = 1;
}

static void on_timer(int signal)
{
	(void)signal;
	position += direction;
	if (position <= 0 || position >= WIDTH)
		direction = -direction;
	if (is_changed) {
		delay = next_delay;
		is_changed = 0; // BUG 2
	}
}

/* Shows the speed, so that the player knows that he was heard. */
static void show_speed(int milliseconds)
{
	char line[40];
	int n = snprintf(line, sizeof(line), "speed %d\n", next_delay);

	write(1, line, (size_t)n);
	for (int left = milliseconds; left > 0; left--)
		usleep(1000);
}

static void update_from_input(int milliseconds)
{
#ifdef FIXED
	sigset_t timer, before;

	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	sigprocmask(SIG_BLOCK, &timer, &before);
#endif
	if (is_changed) { // BUG 1
		show_speed(milliseconds);
		if (is_changed) // BUG 3
			adjustments++;
	}
	if (requests != adjustments) {
		fprintf(stderr, "%d requests, %d adjustments\n", requests, adjustments);
		abort();
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction timer = { .sa_handler = on_timer };
	struct itimerval tick = { { 0, 20000 }, { 0, 20000 } };
	int terminal = argc > 1 ? atoi(argv[1]) : 1, key;

	sigaction(SIGALRM, &timer, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	while ((key = getchar()) != EOF)
		if (key != '\n') {
			on_input(key);
			update_from_input(terminal);
		}
	for (int i = 0; i < 100 && is_changed; i++)
		usleep(10000);
	return position < 0;
}
