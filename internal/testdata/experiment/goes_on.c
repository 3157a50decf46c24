/* A failure that keeps worse from happening: without it the program never ends, and
 * computes, or asks for the time, or waits for something to read. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct state {
	int *how;
};

static struct state *state;
static volatile unsigned long turns;
int computes = 1, asks = 2, waits = 3;

static void drop(void *p)
{
	free(p);
}

int main(void)
{
	int how;

	state = malloc(sizeof(*state));
	state->how = &computes;
	if (getppid() == 0)
		state->how = &asks;
	drop(state);
	how = *state->how;
	for (;;) {
		struct timespec now;
		struct pollfd input = { .fd = 0, .events = POLLIN };

		turns++;
		if (how == asks)
			clock_gettime(CLOCK_MONOTONIC, &now);
		if (how == waits)
			poll(&input, 1, -1);
	}
}
