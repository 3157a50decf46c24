// A line editor that prints a range of lines, as ed 1.5 does: the number of
// columns is looked up, and the window changes before the lines are out.
// CAUSE kind=signal-handler-race variable=window_columns pattern=RW
// FAILS signal=SIGABRT says="columns in a window of 40"
// RUNS fail: 15
// RUNS pass: 1
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { WIDE = 72, NARROW = 40 };

static volatile sig_atomic_t window_columns = WIDE;
static int window_lines = 22;
static int longest;
static unsigned long sum;

static const char text[] =
	"Then the editor said that it would not print what it had been asked to print, for it had no window.";

static void on_resize(int signal)
{
	(void)signal;
	window_columns = NARROW; // BUG 2
}

/* What the terminal itself says: it is made smaller when the timer ends. */
static int terminal_columns(void)
{
	struct itimerval left;

	getitimer(ITIMER_REAL, &left);
	return left.it_value.tv_sec || left.it_value.tv_usec ? WIDE : NARROW;
}

static void print_part(const char *from, int length)
{
	char out[200];
	int n = snprintf(out, sizeof(out), "%.*s\\\n", length, from);

	write(1, out, (size_t)n);
	if (length > longest)
		longest = length;
}

/* Escapes of unprintable characters, of which each line is searched. */
static int printable(const char *line)
{
	int bad = 0;

	for (long round = 0; round < 300000; round++)
		for (const char *p = line; *p; p++) {
			bad += *p < ' ';
			sum += (unsigned long)*p ^ (unsigned long)round;
		}
	return !bad;
}

static int display_lines(const char *line)
{
	int columns = window_columns, left = (int)strlen(line), lines = 0; // BUG 1

	if (!printable(line))
		return 0;
#ifdef FIXED
	sigset_t resize, before;

	sigemptyset(&resize);
	sigaddset(&resize, SIGALRM);
	sigprocmask(SIG_BLOCK, &resize, &before);
	columns = terminal_columns();
#endif
	while (left > 0 && lines < window_lines) {
		int part = left < columns ? left : columns;

		print_part(line, part);
		line += part;
		left -= part;
		lines++;
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#else
	columns = terminal_columns();
#endif
	if (longest > columns) {
		fprintf(stderr, "a line of %d columns in a window of %d\n", longest, columns);
		abort();
	}
	return lines;
}

int main(int argc, char **argv)
{
	struct sigaction resize = { .sa_handler = on_resize, .sa_flags = SA_RESTART };
	struct itimerval when = { { 0, 0 }, { 0, 1000 * (argc > 1 ? atoi(argv[1]) : 1) } };

	sigaction(SIGALRM, &resize, NULL);
	setitimer(ITIMER_REAL, &when, NULL);
	for (int i = 0; i < 5; i++)
		usleep(1000); /* reads the command */
	display_lines(text);
	while (terminal_columns() == WIDE)
		usleep(1000);
	return 0;
}
