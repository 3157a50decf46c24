/* What few programs do: each case in a child process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support_agent.h"

extern char **environ;

/* Objects of all kinds, whole at the end. */
static void work(void)
{
	unsigned char *p[300];

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 300; i++) {
			size_t size = i * (i % 20 ? 7 : 700) + 1;

			CHECK((p[i] = malloc(size)));
			memset(p[i], (int)i, size);
		}
		for (unsigned i = 0; i < 300; i++) {
			CHECK(p[i][0] == (unsigned char)i && p[i][malloc_usable_size(p[i]) - 1] == (unsigned char)i);
			free(p[i]);
		}
	}
	CHECK(agent_root()->error_count == 0);
}

static void *worker(void *unused)
{
	work();
	return unused;
}

static void run_thread(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, worker, NULL) && !pthread_join(t, NULL));
}

static void no_descriptors(void)
{
	CHECK(!close_range(0, ~0u, 0));
	work();
	run_thread();
}

/* As root only: where it cannot be done, nothing is shown. */
static void no_files(void)
{
	if (!chroot("/proc/self/fdinfo") && !chdir("/"))
		CHECK(access("/proc", F_OK) && (setgroups(0, NULL) || setgid(65534) || !setuid(65534)));
	work();
	run_thread();
}

static void *outlives_main(void *main_thread)
{
	CHECK(!pthread_join(*(pthread_t *)main_thread, NULL));
	work();
	exit(0);
}

static pthread_t first;

static void main_ends(void)
{
	pthread_t t;

	first = pthread_self();
	work();
	CHECK(!pthread_create(&t, NULL, outlives_main, &first));
	pthread_exit(malloc(10));
}

static void vforks(void)
{
	char *arguments[] = { "true", NULL };
	int status;
	pid_t pid;

	for (unsigned i = 0; i < 30; i++) {
		pid = vfork();
		if (!pid) {
			/* Allowed by no standard, done by many. */
			free(malloc(1000 + i));
			_exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
		CHECK(!posix_spawnp(&pid, "true", NULL, NULL, arguments, environ));
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		work();
	}
}

/* A child that no fork handler knows of. */
static void raw_fork(void)
{
	int status;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!pid) {
		work();
		run_thread();
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	work();
}

static volatile int ticks, stop;
static void *volatile held;

static void on_tick(int signal)
{
	(void)signal;
	held = malloc(100 + ticks % 3000);
	CHECK(held);
	free(held);
	/* A handler forks while its thread, and others, are in the agent. */
	if (++ticks % 40 == 0) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			alarm(30);
			for (unsigned i = 0; i < 50; i++) {
				void *p = malloc(100 + i * 20);

				CHECK(p);
				free(p);
			}
			_exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	}
}

static void *busy(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!stop)
		work();
	return unused;
}

static void forks_in_handlers(void)
{
	struct itimerval each = { { 0, 300 }, { 0, 300 } }, none = { { 0, 0 }, { 0, 0 } };
	pthread_t t[2];

	signal(SIGALRM, on_tick);
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, busy, NULL));
	CHECK(!setitimer(ITIMER_REAL, &each, NULL));
	while (ticks < 2000)
		work();
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	stop = 1;
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_join(t[i], NULL));
	work();
}

/* The C library's own, for when nothing else is there; and a program that ends
 * without its destructors. */
static void quick(void)
{
	work();
	quick_exit(0);
}

int main(void)
{
	static void (*const cases[])(void) = {
		no_descriptors, no_files, main_ends, vforks, raw_fork, forks_in_handlers, quick,
	};
	int status;
	pid_t pid;

	agent_root();
	work();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			alarm(60);
			cases[i]();
			exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (status)
			fprintf(stderr, "case %u: status %#x\n", i, (unsigned)status);
		CHECK(!status);
	}
	puts("ok");
	return 0;
}
