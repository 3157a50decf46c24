/* Freed objects give way before an allocation fails: those of this thread, of
 * threads that ended, and large ones. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "support_agent.h"

#define LIMIT (40ul << 20) /* of address space, beyond the present size */
#define MOST 400000

static void *objects[MOST];

/* As many as are to be had. */
static size_t fill(size_t size)
{
	size_t n = 0;

	while (n < MOST && (objects[n] = malloc(size)))
		memset(objects[n++], 1, size);
	CHECK(n == MOST || errno == ENOMEM);
	return n;
}

static void empty(size_t n)
{
	while (n)
		free(objects[--n]);
}

static void *thread(void *size)
{
	size_t n = 6000000 / (size_t)size;

	for (size_t i = 0; i < n; i++)
		CHECK((objects[i] = malloc((size_t)size)));
	empty(n);
	return NULL;
}

static unsigned long address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * 4096;
}

static unsigned long quarantined(void)
{
	unsigned long bytes = 0;

	for (unsigned i = 0; i < agent_root()->heaps.used; i++)
		bytes += agent_heap(i)->quarantined;
	return bytes;
}

int main(void)
{
	static const size_t sizes[] = { 100, 1000, 4000, 300, 20000, 150, 300000, 2000 };
	struct rlimit limit;
	pthread_t t;
	void *p;

	agent_root();
	for (size_t i = 0; i < 3; i++) {
		CHECK(!pthread_create(&t, NULL, thread, (void *)(size_t)(200 + i * 500)));
		CHECK(!pthread_join(t, NULL));
	}
	CHECK(quarantined() > 900000);
	CHECK(!getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = address_space() + LIMIT;
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	for (unsigned i = 0; i < 16; i++) {
		size_t size = sizes[i % 8], n = fill(size);

		/* Metadata, canaries and what the program itself needs take their part. */
		if (n < MOST)
			CHECK(n * size > LIMIT / 2);
		empty(n / 2);
		p = realloc(objects[n - 1], size + size / 2);
		CHECK(p);
		free(p);
		for (size_t k = n / 2; k < n - 1; k++)
			free(objects[k]);
	}
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
