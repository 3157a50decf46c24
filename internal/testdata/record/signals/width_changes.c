// SIGWINCH changes a width between two reads of it: a text measured with the
// first does not fit the second.
// ENDS: SIGABRT
// EVENTS: signal 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int width = 80;
static char *line;

static void on_resize(int signal)
{
	(void)signal;
	width = width == 80 ? 132 : 80;
}

static void on_timer(int signal)
{
	(void)signal;
	raise(SIGWINCH);
}

static int redraw(void)
{
	int room = width;

	line = realloc(line, (size_t)room + 1);
	for (int i = 0; i < width; i++) {
		if (i > room)
			return 1;
		line[i] = (char)('a' + i % 26);
	}
	return 0;
}

int main(void)
{
	struct sigaction resize = { .sa_handler = on_resize }, timer = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };

	sigaction(SIGWINCH, &resize, NULL);
	sigaction(SIGALRM, &timer, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;)
		if (redraw())
			abort();
}
