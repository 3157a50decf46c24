// A crash whose handler, with its own signal kept back, takes itself away, sends the
// signal again, by raise and by kill, and returns: the process dies where it had faulted.
// ENDS: SIGSEGV
// EVENTS: signal 1
#include <signal.h>
#include <unistd.h>

static int *volatile slot;
static double volatile scale = 1.5;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	if (write(2, "fatal\n", 6) != 6)
		return;
	signal(sig, SIG_DFL);
	raise(sig);
	kill(getpid(), sig);
}

__attribute__((noinline)) static double scaled(double by)
{
	return by * scale * *slot;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	return scaled(getpid()) > 0;
}
