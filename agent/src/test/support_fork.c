/* fork while other threads allocate: the child can continue with everything. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support_agent.h"

#define THREADS 4
#define FORKS 30

static volatile int stop;

static void churn(unsigned rounds, unsigned seed)
{
	void *live[64] = { NULL };

	for (unsigned i = 0; i < rounds; i++) {
		unsigned k = (seed = seed * 1103515245 + 12345) >> 16 & 63;

		free(live[k]);
		live[k] = malloc(1 + (seed >> 8) % (i % 100 ? 700 : 400000));
		CHECK(live[k]);
	}
	for (unsigned k = 0; k < 64; k++)
		free(live[k]);
}

static void *worker(void *seed)
{
	for (unsigned n = 0; !stop; n++)
		churn(1000, (unsigned)(uintptr_t)seed + n);
	return NULL;
}

static void *short_worker(void *seed)
{
	churn(2000, (unsigned)(uintptr_t)seed);
	return NULL;
}

/* The heap that the parent's thread had, in the child. */
static void child(void)
{
	struct dg_root *root = agent_root();
	unsigned abandoned = agent_heaps(DG_HEAP_ABANDONED), running = 0;
	pthread_t t[3];

	CHECK(root->pid == (uint32_t)getpid());
	CHECK(abandoned >= THREADS);
	CHECK(agent_heaps(DG_HEAP_OWNED) == 1);
	for (unsigned i = 1; i < root->threads.used; i++)
		if (agent_thread(i)->state == DG_THREAD_RUNNING) {
			CHECK(agent_thread(i)->tid == (uint32_t)getpid());
			running++;
		}
	CHECK(running == 1);
	churn(3000, 7);
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, short_worker, (void *)(uintptr_t)i));
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(agent_heaps(DG_HEAP_ABANDONED) == abandoned);
	CHECK(root->error_count == 0);
}

static int wait_for(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

int main(void)
{
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)(i + 1)));
	while (agent_root()->threads.used < THREADS + 2)
		usleep(1000);
	for (unsigned i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			child();
			/* A grandchild, and half of the ways out. */
			pid = fork();
			CHECK(pid >= 0);
			if (!pid)
				exit(0);
			CHECK(!wait_for(pid));
			i % 2 ? exit(0) : _exit(0);
		}
		CHECK(wait_for(pid) == 0);
		CHECK(agent_root()->pid == (uint32_t)getpid());
	}
	stop = 1;
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(agent_heaps(DG_HEAP_ABANDONED) == 0);
	puts("ok");
	return 0;
}
