/* Threads that come and go, each with an object that outlives it: heaps are
 * taken over, and nothing grows but the list of threads and those objects. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "support_agent.h"

#define AT_ONCE 8

static void *worker(void *arg)
{
	void **left = arg;
	void *p = malloc(100), *q = calloc(3, 50);

	CHECK(p && q);
	free(q);
	free(*left); /* of an earlier thread */
	*left = p;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	static void *left[AT_ONCE];
	struct dg_root *root = agent_root();
	uint64_t objects = 0;

	for (unsigned n = 0; n < threads; n += AT_ONCE) {
		pthread_t t[AT_ONCE];

		for (unsigned i = 0; i < AT_ONCE; i++)
			CHECK(!pthread_create(&t[i], NULL, worker, &left[i]));
		for (unsigned i = 0; i < AT_ONCE; i++)
			CHECK(!pthread_join(t[i], NULL));
		if (n < threads / 2)
			objects = root->objects.used;
	}
	CHECK(root->threads.used > threads);
	CHECK(root->heaps.used <= AT_ONCE + 2);
	CHECK(root->objects.used == objects);
	CHECK(root->meta.used < 1 << 20);
	CHECK(agent_heaps(DG_HEAP_OWNED) == 1);
	CHECK(agent_heaps(DG_HEAP_IDLE) == root->heaps.used - 2);
	/* The list keeps who it was; a reused heap does not rewrite it. */
	CHECK(agent_thread(2)->state == DG_THREAD_ENDED && agent_thread(2)->tid);
	CHECK(agent_thread(2)->stack_low < agent_thread(2)->stack_high);
	CHECK(root->error_count == 0);
	puts("ok");
	return 0;
}
