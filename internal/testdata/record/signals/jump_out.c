// Handlers that are left by siglongjmp, from the program's code and from calls.
// ENDS: exit 7
// EVENTS: signal 40
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile unsigned long jumps, work;

static void on_timer(int signal)
{
	jumps++;
	siglongjmp(back, signal);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval once = { { 0, 0 }, { 0, 200 } };
	char text[32];
	int ends[2];

	if (pipe(ends))
		return 1;
	sigaction(SIGALRM, &action, NULL);
	while (jumps < 40) {
		if (sigsetjmp(back, 1))
			continue;
		setitimer(ITIMER_REAL, &once, NULL);
		if (jumps % 2)
			read(ends[0], text, sizeof(text));
		for (;;)
			work += (unsigned long)snprintf(text, sizeof(text), "%lu", work);
	}
	return 7;
}
