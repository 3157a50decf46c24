// A reader of numbers that tells by errno whether strtoul succeeded. The handler of its timer
// looks for a file that is missing, so that errno is set between the call and its check.
// CAUSE kind=signal-handler-race variable=errno pattern=WWR
// FAILS signal=SIGABRT says="is no number"
// RUNS fail: 200
// RUNS pass: 0
// COMPILERS: gcc clang
// SHORT: O2
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t stops;

static void look(int sig)
{
#ifdef FIXED
	int saved = errno;
#endif
	(void)sig;
	if (access("/nonexistent/stop", F_OK) == 0) // BUG 2
		stops++;
#ifdef FIXED
	errno = saved;
#endif
}

static void spin(void)
{
	for (volatile int i = 0; i < 300000; i++)
		;
}

__attribute__((noinline)) static int parse(const char *text, unsigned long *value)
{
	errno = 0; // BUG 1
	*value = strtoul(text, NULL, 10);
	spin();
	return errno ? -1 : 0; // BUG 3
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = look, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 10000 }, { 0, 10000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--) {
		unsigned long value;

		if (parse("42", &value)) {
			fprintf(stderr, "42 is no number: %s\n", strerror(errno));
			abort();
		}
	}
	puts("well");
	return 0;
}
