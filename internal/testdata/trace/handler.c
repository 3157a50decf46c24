// A signal's handler that writes between the accesses of the code that it
// interrupts.
// WATCH: depth 4, seen 8
// LEAST: 12
// ENDS: exit 0
#include <signal.h>
#include <stdint.h>
#include <string.h>

volatile sig_atomic_t depth;
volatile uint64_t seen;

static void handler(int number)
{
	depth++;
	seen |= 1ull << number;
	if (number == SIGUSR1)
		raise(SIGUSR2);
	depth--;
}

int main(void)
{
	struct sigaction a;

	memset(&a, 0, sizeof(a));
	a.sa_handler = handler;
	if (sigaction(SIGUSR1, &a, NULL) || sigaction(SIGUSR2, &a, NULL))
		return 1;
	depth = 10;
	raise(SIGUSR1);
	return depth != 10 || seen != (1ull << SIGUSR1 | 1ull << SIGUSR2);
}
