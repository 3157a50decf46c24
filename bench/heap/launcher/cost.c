/* Runs a program and writes what it cost to file descriptor 3. A program that
 * Go starts by itself would count Go's memory as its peak: Go starts children
 * with vfork, and the kernel keeps the peak over exec (fs/exec.c, exec_mmap).
 * usage: cost [NAME=VALUE]... -- PROGRAM [ARGUMENT]...
 * The variables are set for the program alone. Processor time and peak are
 * those of the program and of the children that it waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPORT = 3 };

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

static void run(char **argv)
{
	close(REPORT);
	while (strcmp(*argv, "--") != 0)
		putenv(*argv++);
	argv++;
	execvp(*argv, argv);
	fprintf(stderr, "cost: %s: %s\n", *argv, strerror(errno));
	_exit(127);
}

int main(int argc, char **argv)
{
	struct rusage use;
	int status;

	if (argc < 3)
		return 2;
	long long start = now();
	pid_t pid = fork();
	if (pid < 0) {
		perror("cost: fork");
		return 2;
	}
	if (pid == 0)
		run(argv + 1);
	dprintf(REPORT, "%d\n", (int)pid);
	while (wait4(pid, &status, 0, &use) < 0)
		if (errno != EINTR) {
			perror("cost: wait4");
			return 2;
		}
	dprintf(REPORT, "%lld %lld %ld %d\n", now() - start,
		(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000ll + use.ru_utime.tv_usec + use.ru_stime.tv_usec,
		use.ru_maxrss, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	return 0;
}
