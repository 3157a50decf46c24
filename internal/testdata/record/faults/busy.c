// Threads that lock, allocate, write, take signals and start threads and
// processes. What it prints does not depend on their order, so that a run that
// was meddled with is told by it.
//
// ARGS: 4 300
// ENDS: exit 0
// EVENTS: mutex 100
// EVENTS: syscall 500
// EVENTS: signal 5
// EVENTS: tsc 100
// EVENTS: create 20
// EVENTS: fork 5
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum, rounds;
static unsigned ticks;

static void tick(int signal)
{
	(void)signal;
	__atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED); /* threads handle at the same time */
}

static void fail(const char *what)
{
	perror(what);
	_exit(99);
}

static void *brief(void *arg)
{
	pthread_mutex_lock(&lock);
	sum += (unsigned long)arg;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void start_thread(unsigned long i)
{
	pthread_t t;

	if (pthread_create(&t, NULL, brief, (void *)i) || pthread_join(t, NULL))
		fail("thread");
}

static void start_process(unsigned long i)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit((int)(i & 63));
	while (waitpid(child, &status, 0) < 0)
		;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != (int)(i & 63))
		fail("process");
}

static void *work(void *arg)
{
	char text[64];
	int pipes[2];

	if (pipe(pipes))
		fail("pipe");
	for (unsigned long i = 0; i < rounds; i++) {
		char *p = malloc(16 + i % 3000), *q = NULL;
		unsigned long before = __rdtsc();

		memset(p, (int)i, 16 + i % 3000);
		if (write(pipes[1], &i, sizeof(i)) != sizeof(i) || read(pipes[0], &q, sizeof(q)) != sizeof(q))
			fail("write, read");
		pthread_mutex_lock(&lock);
		sum += (unsigned long)q + (unsigned char)p[i % 16];
		pthread_mutex_unlock(&lock);
		if (__rdtsc() < before)
			fail("time");
		free(p);
		if (i % 16 == 3)
			start_thread(i);
		if (i % 64 == 5)
			start_process(i);
	}
	snprintf(text, sizeof(text), "thread %lu done\n", (unsigned long)arg);
	return strdup(text);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } };
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	pthread_t t[64];

	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (unsigned long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (unsigned long i = 0; i < threads; i++) {
		void *text;

		pthread_join(t[i], &text);
		fputs(text, stdout);
		free(text);
	}
	printf("sum %lu\n", sum);
	return 0;
}
