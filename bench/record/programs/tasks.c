/* tasks malloc|create|fork|spawn|exit|exit-threads|exit-heap|signal COUNT: threads that
 * allocate, threads and processes that come and go, signals that arrive at any instruction. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LIVE = 1000, SLEEPERS = 32, BLOCKS = 4096, BLOCK = 65536 };

extern char **environ;

static long count;

static void *allocate(void *arg)
{
	uint64_t random = (uint64_t)(uintptr_t)arg * 2654435761u + 1;
	static __thread char *live[LIVE];

	for (long i = 0; i < count; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		char **at = &live[(random >> 33) % LIVE];
		size_t size = 16 + (random >> 50) % 500;
		free(*at);
		*at = malloc(size);
		if (!*at)
			abort();
		(*at)[0] = 1;
	}
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
	return NULL;
}

static int allocators(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, allocate, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static void *nothing(void *arg) { return arg; }

static int creations(void)
{
	pthread_t t;

	for (long i = 0; i < count; i++)
		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			return 1;
	return 0;
}

static int forks(void)
{
	int status;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 0;
}

static int spawns(void)
{
	char *args[] = { "true", NULL };
	int status;
	pid_t pid;

	for (long i = 0; i < count; i++)
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ) || waitpid(pid, &status, 0) != pid || status)
			return 1;
	return 0;
}

/* Processes that execute nothing. */
static int exits(void)
{
	int status;

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 0;
}

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* The same beside threads that do nothing. */
static int exits_threads(void)
{
	pthread_t t;

	for (int i = 0; i < SLEEPERS; i++)
		if (pthread_create(&t, NULL, sleeps, NULL))
			return 1;
	return exits();
}

/* The same with memory whose page tables are to be copied. */
static int exits_heap(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		char *block = malloc(BLOCK);

		if (!block)
			return 1;
		memset(block, 1, BLOCK);
	}
	return exits();
}

static volatile sig_atomic_t ticks;

static void tick(int signal) { ticks += signal > 0; }

/* Until so many signals came, one each millisecond. */
static int signals(void)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	volatile uint64_t work = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	while (ticks < count)
		work = work * 3 + 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	count = atol(argv[2]);
	if (!strcmp(argv[1], "malloc"))
		return allocators();
	if (!strcmp(argv[1], "create"))
		return creations();
	if (!strcmp(argv[1], "fork"))
		return forks();
	if (!strcmp(argv[1], "spawn"))
		return spawns();
	if (!strcmp(argv[1], "exit"))
		return exits();
	if (!strcmp(argv[1], "exit-threads"))
		return exits_threads();
	if (!strcmp(argv[1], "exit-heap"))
		return exits_heap();
	return signals();
}
