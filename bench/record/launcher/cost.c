/* Runs a program and writes what it cost to file descriptor 3: its process id at
 * once; at the end microseconds of wall time, of processors' time in all, of that
 * what diagnose itself took, and the exit status.
 * usage: cost PROGRAM [ARGUMENT]...
 * The tracer outlives `diagnose record` for a moment, and its time has the
 * program's in it: it becomes this process's child and is waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
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

/* What a process of diagnose that ended, and was not waited for, took without its
 * children: in ticks of the clock, for the kernel tells it in no finer unit beside
 * theirs. The tracer was started as /proc/self/exe. */
static long long of_tool(pid_t pid)
{
	char path[64], text[1024], *name, *end;
	unsigned long user, system;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return 0;
	*end = 0;
	if (strcmp(name + 1, "exe") && strcmp(name + 1, "diagnose"))
		return 0;
	return (long long)(user + system) * 1000000 / sysconf(_SC_CLK_TCK);
}

static long long micro(const struct timeval *t)
{
	return t->tv_sec * 1000000ll + t->tv_usec;
}

int main(int argc, char **argv)
{
	long long start = now(), wall = 0, all = 0, tool = 0;
	int status, ended = 0;
	struct rusage use;
	siginfo_t info;

	if (argc < 2)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = fork();
	if (pid == 0) {
		close(REPORT);
		execvp(argv[1], argv + 1);
		fprintf(stderr, "cost: %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	dprintf(REPORT, "%d\n", (int)pid);
	while (!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) || errno == EINTR) {
		if (info.si_pid == pid)
			wall = now() - start;
		tool += of_tool(info.si_pid);
		if (wait4(info.si_pid, &status, 0, &use) < 0)
			return 2;
		all += micro(&use.ru_utime) + micro(&use.ru_stime);
		if (info.si_pid == pid)
			ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	dprintf(REPORT, "%lld %lld %lld %d\n", wall, all, tool, ended);
	return 0;
}
