// A signal that arrives in the recorder's code waits until the thread has left it. The thread may
// be in sigsuspend by then, for that signal, and must get it.
// ENDS: exit 0
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20000, MOST_BLOCKS = 97 };

static volatile sig_atomic_t arrived;
static void *volatile block;

static void on_signal(int signal)
{
	(void)signal;
	arrived = 1;
}

/* Sends a signal for each byte. */
static void answer(int from, pid_t to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		kill(to, SIGUSR1);
	_exit(0);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pid_t own = getpid(), child;
	sigset_t user, before;
	int ends[2];

	if (sigaction(SIGUSR1, &action, NULL) || sigemptyset(&user) || sigaddset(&user, SIGUSR1) || pipe(ends))
		return 1;
	child = fork();
	if (!child) {
		close(ends[1]);
		answer(ends[0], own);
	}
	close(ends[0]);
	for (int round = 0; round < ROUNDS; round++) {
		arrived = 0;
		if (write(ends[1], "!", 1) != 1)
			return 2;
		for (int i = 0; i < round % MOST_BLOCKS; i++) {
			block = malloc(32);
			free(block);
		}
		sigprocmask(SIG_BLOCK, &user, &before);
		while (!arrived)
			sigsuspend(&before);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	close(ends[1]);
	return waitpid(child, NULL, 0) != child;
}
