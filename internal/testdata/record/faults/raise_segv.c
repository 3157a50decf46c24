// SIGSEGV, SIGILL and SIGTRAP that a process sent: the first two are blocked and
// handled, the last has its default action.
//
// ENDS: SIGTRAP
// EVENTS: signal 2
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void handler(int signal)
{
	seen += signal;
}

int main(void)
{
	sigset_t set;

	signal(SIGSEGV, handler);
	signal(SIGILL, handler);
	raise(SIGSEGV);
	sigemptyset(&set);
	sigaddset(&set, SIGILL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGILL);
	if (seen != SIGSEGV)
		_exit(3);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (seen != SIGSEGV + SIGILL)
		_exit(4);
	kill(getpid(), SIGTRAP);
	return 5;
}
