/* Two handlers that change a width between two reads of it. */
// ENDS: exit 3
#include <signal.h>
#include <unistd.h>

static volatile int width = 80, came;

static void changed(int signal)
{
	width -= 20;
	came = came * 2 + (signal == SIGUSR2) + 1;
}

int main(void)
{
	int before, after;

	signal(SIGUSR1, changed);
	signal(SIGUSR2, changed);
	before = width;
	kill(getpid(), SIGUSR1);
	getuid();
	kill(getpid(), SIGUSR2);
	getuid();
	after = width;
	getppid();
	return before == after && came == 4 ? 0 : 3;
}
