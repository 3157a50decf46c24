/* The handler that makes the table is blocked until after the first use: the signal came, and
   no other order is in the recording. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static int store[4];
static int *volatile table;
static void load(int sig) { (void)sig; store[1] = 42; table = store; }
__attribute__((noinline)) static int use(void) { return table[1]; }
int main(int argc, char **argv)
{
	sigset_t set;
	(void)argv;
	signal(SIGUSR1, load);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (argc < 2)
		sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGUSR1);
	printf("%d\n", use());
	return 0;
}
