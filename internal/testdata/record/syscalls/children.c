// Children: fork, vfork, posix_spawn, system, popen, and what they tell.
// ENDS: SIGABRT
// EVENTS: fork 6
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

static void forked(void)
{
	int ends[2], status;
	char text[32];
	pid_t pid;

	check(pipe(ends));
	pid = check(fork());
	if (!pid) {
		snprintf(text, sizeof(text), "child of %d", getppid());
		check(write(ends[1], text, strlen(text)));
		_exit(7);
	}
	check(close(ends[1]));
	fold_in(text, (unsigned long)check(read(ends[0], text, sizeof(text))));
	must(check(waitpid(pid, &status, 0)) == pid && WEXITSTATUS(status) == 7);
	fold_in(&pid, sizeof(pid));
	must(wait(&status) == -1 && errno == ECHILD);
}

static void executed(void)
{
	char *args[] = { "sh", "-c", "exit 9", NULL };
	int status;
	pid_t pid = check(vfork());

	if (!pid) {
		execv("/nowhere/sh", args);
		execv("/bin/sh", args);
		_exit(1);
	}
	must(check(waitpid(pid, &status, 0)) == pid && WEXITSTATUS(status) == 9);
}

static void spawned(void)
{
	char *args[] = { "sh", "-c", "echo spawned", NULL }, text[32];
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	pid_t pid;

	check(pipe2(ends, O_CLOEXEC));
	must(!posix_spawn_file_actions_init(&actions));
	must(!posix_spawn_file_actions_adddup2(&actions, ends[1], 1));
	must(!posix_spawnp(&pid, "sh", &actions, NULL, args, environ));
	check(close(ends[1]));
	must(check(read(ends[0], text, sizeof(text))) == 8);
	must(check(waitpid(pid, &status, 0)) == pid && !status);
	must(posix_spawn(&pid, "/nowhere/sh", NULL, NULL, args, environ) == ENOENT);
	posix_spawn_file_actions_destroy(&actions);
}

int main(void)
{
	char text[64] = "";
	FILE *p;

	forked();
	executed();
	spawned();
	must(WEXITSTATUS(system("exit 4")) == 4);
	p = popen("echo from a pipe", "r");
	must(p && fgets(text, sizeof(text), p) && !strcmp(text, "from a pipe\n"));
	must(!pclose(p));
	printf("%lx\n", fold);
	fflush(stdout);
	abort();
}
