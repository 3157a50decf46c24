// A shell that saves its history when the terminal goes away, as bash 3.0 does.
// The count of this session's lines is raised in steps; a hangup in between
// finds that there is nothing to save.
// CAUSE kind=signal-handler-race variable=lines_this_session pattern=RW
// FAILS signal=SIGABRT says="typed 1, saved 0"
// RUNS fail: 20
// RUNS pass: 400
// RUNS pass: 300
// INPUT: make all
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { KEPT = 500 };

static char *history[KEPT];
static int history_length;
static volatile sig_atomic_t lines_this_session;
static int typed, saved, duplicates;
static unsigned long digests[KEPT];

/* So that equal lines can be found without comparing all of them. */
static unsigned long digest(const char *line)
{
	unsigned long h = 5381;

	for (long round = 0; round < 15000000; round++)
		h = h * 33 + (unsigned char)line[round % (long)(strlen(line) | 1)];
	return h;
}

static void maybe_append_history(void)
{
	if (lines_this_session > 0) { // BUG 1
		for (int i = history_length - lines_this_session; i < history_length; i++)
			saved++;
	}
	lines_this_session = 0;
}

static void leave(void)
{
	char text[60];
	int n;

	maybe_append_history();
	if (saved == typed - duplicates)
		_exit(0);
	n = snprintf(text, sizeof(text), "typed %d, saved %d\n", typed, saved);
	write(2, text, (size_t)n);
	abort();
}

static void on_hangup(int signal)
{
	(void)signal;
	leave();
}

static void add_history(const char *line)
{
#ifdef FIXED
	sigset_t hangup, before;

	sigemptyset(&hangup);
	sigaddset(&hangup, SIGALRM);
	sigprocmask(SIG_BLOCK, &hangup, &before);
#endif
	int lines = lines_this_session;

	typed++;
	history[history_length] = strdup(line);
	digests[history_length] = digest(line);
	for (int i = 0; i < history_length; i++)
		duplicates += digests[i] == digests[history_length] && !strcmp(history[i], line);
	history_length++;
	lines_this_session = lines + 1; // BUG 2
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction hangup = { .sa_handler = on_hangup };
	struct itimerval closes = { { 0, 0 }, { 0, 1000 * (argc > 1 ? atoi(argv[1]) : 100) } };
	char line[200];

	sigaction(SIGALRM, &hangup, NULL);
	setitimer(ITIMER_REAL, &closes, NULL);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		add_history(line);
	}
	usleep(600000);
	leave();
}
