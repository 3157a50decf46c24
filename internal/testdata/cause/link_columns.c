// A text browser that highlights a link, as lynx 2.8.7 does: the window is made
// smaller between two looks at its width.
// CAUSE kind=signal-handler-race variable=columns pattern=RWR
// FAILS signal=SIGABRT says="outside of the screen"
// RUNS fail: 10 20
// RUNS pass: 200 20
// RUNS pass: 230 20
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { ROWS = 8, WIDEST = 132 };

static volatile sig_atomic_t columns = 120;
static int rows = ROWS;
static char screen[ROWS][WIDEST + 1];
static const char *const links[] = { "news", "help", "index of all that has ever been published here" };

/* The user's other terminal is half as wide. */
static void size_change(int signal)
{
	(void)signal;
	columns = columns == 120 ? 64 : 120; // BUG 2
}

static void draw(int row, int from, int to, char how)
{
	for (int x = from; x < to; x++)
		screen[row][x] = how;
}

/* The slow way to a terminal: a line at a time, over a modem. */
static void flush_row(int row, int milliseconds)
{
	char line[WIDEST + 2];
	int n = snprintf(line, sizeof(line), "%.*s\n", WIDEST, screen[row]);

	write(1, line, (size_t)n);
	usleep((useconds_t)milliseconds * 1000);
}

static void highlight(int link, int milliseconds)
{
	int row = link % rows, length = (int)strlen(links[link]), left;
#ifdef FIXED
	sigset_t resize, before;

	sigemptyset(&resize);
	sigaddset(&resize, SIGALRM);
	sigprocmask(SIG_BLOCK, &resize, &before);
#endif

	left = columns - length; // BUG 1
	draw(row, 0, left, ' ');
	flush_row(row, milliseconds);
	draw(row, left, left + length, '#');
	if (left + length > columns) { // BUG 3
		fprintf(stderr, "link %d is outside of the screen\n", link);
		abort();
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction resize = { .sa_handler = size_change, .sa_flags = SA_RESTART };
	struct itimerval when = { { 0, 0 }, { 0, 1000 * (argc > 1 ? atoi(argv[1]) : 200) } };
	int modem = argc > 2 ? atoi(argv[2]) : 20;

	memset(screen, '.', sizeof(screen));
	sigaction(SIGALRM, &resize, NULL);
	setitimer(ITIMER_REAL, &when, NULL);
	for (int link = 0; link < 3; link++)
		highlight(link, modem);
	for (int i = 0; i < 300; i++) /* until the user does something */
		usleep(1000);
	for (int link = 0; link < 2; link++)
		highlight(link, 1);
	return 0;
}
