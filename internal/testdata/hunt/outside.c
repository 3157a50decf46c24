// Threads that wait for each other by way of the kernel, and for a child process.
// ENDS: exit 0
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int to[2], back[2];

static void *echo(void *arg)
{
	static char bytes[100000];
	size_t got = 0;
	ssize_t n;

	while (got < sizeof(bytes) && (n = read(to[0], bytes + got, sizeof(bytes) - got)) > 0)
		got += (size_t)n;
	if (write(back[1], bytes + sizeof(bytes) - 4, 4) != 4)
		abort();
	return arg;
}

int main(void)
{
	static char bytes[100000];
	char answer[5] = "";
	pthread_t t;
	int status;
	pid_t child;

	if (pipe(to) || socketpair(AF_UNIX, SOCK_STREAM, 0, back))
		return 1;
	memcpy(bytes + sizeof(bytes) - 4, "done", 4);
	pthread_create(&t, NULL, echo, NULL);
	child = fork();
	if (!child) {
		usleep(1000);
		_exit(5);
	}
	if (write(to[1], bytes, sizeof(bytes)) != sizeof(bytes) || read(back[0], answer, 4) != 4)
		return 2;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5 || strcmp(answer, "done"))
		return 3;
	pthread_join(t, NULL);
	return 0;
}
