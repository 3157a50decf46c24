/* Makes processes in every way there is, from several threads that use the
 * heap all the time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int stop;

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!stop) {
		char *p[32];

		for (int i = 0; i < 32; i++)
			memset(p[i] = malloc(rand_r(&seed) % 3000 + 1), 1, 1);
		for (int i = 0; i < 32; i++)
			free(p[i]);
		sched_yield();
	}
	return NULL;
}

static void *short_thread(void *arg)
{
	return strdup(arg);
}

static int use_heap(void)
{
	char *p[300];
	pthread_t t;
	void *s;

	for (int i = 0; i < 300; i++)
		p[i] = calloc(1, i * 50 + 1);
	for (int i = 0; i < 300; i++)
		p[i] = realloc(p[i], i * 90 + 1);
	for (int i = 0; i < 300; i++)
		free(p[i]);
	if (pthread_create(&t, NULL, short_thread, "thread of the child") || pthread_join(t, &s))
		return 1;
	free(s);
	return 0;
}

static int on_shared_memory(void *arg)
{
	(void)arg;
	free(malloc(100));
	_exit(4);
}

static int status_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	char *args[] = {"sh", "-c", "exit 3", NULL}, line[100], *stack = malloc(1 << 16);
	pthread_t t[3];
	pid_t pid;
	int sum = 0;

	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, churn, (void *)i);
	for (int i = 0; i < 60; i++) {
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			if (use_heap())
				_exit(9);
			if (i % 10)
				_exit(1);
			/* A grandchild, and an end by exit(). */
			pid = fork();
			if (pid == 0)
				exit(use_heap());
			exit(status_of(pid) + 1);
		}
		sum += status_of(pid);
	}
	printf("fork %d\n", sum);
	for (int i = sum = 0; i < 40; i++) {
		pid = vfork();
		if (pid == 0) {
			execv("/bin/sh", args);
			_exit(9);
		}
		sum += status_of(pid);
	}
	printf("vfork %d\n", sum);
	for (int i = sum = 0; i < 40; i++)
		sum += posix_spawnp(&pid, "sh", NULL, NULL, args, environ) ? -1 : status_of(pid);
	printf("spawn %d\n", sum);
	for (int i = sum = 0; i < 20; i++)
		sum += WEXITSTATUS(system("exit 2"));
	printf("system %d\n", sum);
	for (int i = sum = 0; i < 20; i++) {
		FILE *f = popen("echo 7", "r");

		sum += fgets(line, sizeof(line), f) ? atoi(line) : -1;
		pclose(f);
	}
	printf("popen %d\n", sum);
	for (int i = sum = 0; i < 20; i++)
		sum += status_of(clone(on_shared_memory, stack + (1 << 16), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	printf("clone %d\n", sum);
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	free(stack);
	return 0;
}
