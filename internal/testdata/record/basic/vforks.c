// A process that makes one by vfork, which executes another program.
//
// ENDS: exit 3
// EVENTS: fork 1
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int status;
	pid_t child = vfork();

	if (!child) {
		execl("/bin/false", "false", (char *)0);
		_exit(127);
	}
	waitpid(child, &status, 0);
	return 2 + WEXITSTATUS(status);
}
