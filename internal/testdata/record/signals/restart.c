// A read that is restarted, one that is not, select and sleeps that end, pause,
// sigsuspend, sigwait and signalfd.
// ENDS: exit 9
// EVENTS: signal 6
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t came;

static void on_timer(int signal)
{
	(void)signal;
	came++;
	if (came == 2) {
		char c = 'x';

		write(ends[1], &c, 1);
	}
}

static void timer_in(int microseconds, int again)
{
	struct itimerval t = { { 0, again }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &t, NULL);
}

static void handle(int flags)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = flags };

	sigaction(SIGALRM, &action, NULL);
}

int main(void)
{
	struct timespec longer = { 500, 0 }; /* than a busy machine takes for a signal */
	struct timeval long_too = { 500, 0 };
	sigset_t alarms, none, old;
	struct signalfd_siginfo info;
	fd_set set;
	char c = 0;
	int signal, fd;

	if (pipe(ends))
		return 1;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigemptyset(&none);

	handle(SA_RESTART);
	timer_in(1000, 1000);
	if (read(ends[0], &c, 1) != 1 || c != 'x' || came < 2)
		return 2;
	timer_in(0, 0);

	handle(0);
	timer_in(1000, 1000);
	if (read(ends[0], &c, 1) != -1 || errno != EINTR)
		return 3;
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	if (select(ends[0] + 1, &set, NULL, NULL, &long_too) != -1 || errno != EINTR)
		return 4;
	if (nanosleep(&longer, &longer) != -1 || errno != EINTR || longer.tv_sec >= 500)
		return 5;
	timer_in(0, 0);

	sigprocmask(SIG_BLOCK, &alarms, &old);
	came = 0;
	timer_in(1000, 0);
	if (sigsuspend(&none) != -1 || errno != EINTR || came != 1)
		return 6;
	if (!sigismember(&alarms, SIGALRM))
		return 7;
	timer_in(1000, 0);
	if (sigwait(&alarms, &signal) || signal != SIGALRM || came != 1)
		return 8;
	fd = signalfd(-1, &alarms, 0);
	timer_in(1000, 0);
	if (read(fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo != SIGALRM)
		return 10;
	timer_in(1000, 0);
	struct pollfd p = { .fd = ends[0], .events = POLLIN };
	if (ppoll(&p, 1, NULL, &none) != -1 || errno != EINTR || came != 2)
		return 11;
	printf("done %d\n", (int)came);
	return 9;
}
