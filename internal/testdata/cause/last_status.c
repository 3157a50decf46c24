// A program's own errno: the handler of a timer uses it as well, between where
// it was set and where it is looked at.
// CAUSE kind=signal-handler-race variable=last_status pattern=WWR
// FAILS signal=SIGABRT says="cannot be opened"
// RUNS fail: 8
// RUNS pass: 300
// COMPILERS: gcc clang
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum status { DONE, MISSING, DENIED };

static volatile enum status last_status;
static int beats;
static unsigned long spent;
static int statistics = -1;

static int open_file(const char *name)
{
	int fd = open(name, O_RDONLY);

	last_status = fd >= 0 ? DONE : errno == ENOENT ? MISSING : DENIED; // BUG 1
	return fd;
}

static void heartbeat(int signal)
{
	char c;
#ifdef FIXED
	enum status saved = last_status;
#endif

	(void)signal;
	beats++;
	last_status = pread(statistics, &c, 1, 0) == 1 ? DONE : DENIED; // BUG 2
#ifdef FIXED
	last_status = saved;
#endif
}

/* Each miss is traced, with a checksum so that the trace can be compared. */
static void trace(const char *name)
{
	unsigned long sum = 0;

	for (long i = 0; i < 30000000; i++)
		sum = sum * 31 + (unsigned char)name[i & 3];
	spent += sum;
}

/* Whatever else is wrong with such a file is for the administrator. */
static int is_missing(const char *name)
{
	int fd = open_file(name);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	trace(name);
	if (last_status != MISSING) { // BUG 3
		fprintf(stderr, "%s: it is there, and cannot be opened\n", name);
		abort();
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sigaction beat = { .sa_handler = heartbeat, .sa_flags = SA_RESTART };
	struct itimerval when = { { 0, 0 }, { 0, 1000 * (argc > 1 ? atoi(argv[1]) : 300) } };
	int missing;

	statistics = open("/proc/self/exe", O_RDONLY);
	sigaction(SIGALRM, &beat, NULL);
	setitimer(ITIMER_REAL, &when, NULL);
	missing = is_missing("/nowhere/passwords");
	for (int i = 0; i < 200 && !beats; i++)
		usleep(5000);
	return spent == 0 || !missing;
}
