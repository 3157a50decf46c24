/* dg_check_all in a thread of its own beside threads that allocate and free:
 * nothing is accused falsely, and planted damage is found, once. */
#include "agent.c"

#include <stdio.h>

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("line %d: not so: %s\n", __LINE__, #condition); \
			_Exit(1);                                              \
		}                                                              \
	} while (0)

static int stop;
static unsigned rounds;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *checker(void *unused)
{
	(void)unused;
	for (; !stopped(); __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED))
		dg_check_all(DG_AT_CHECK);
	return NULL;
}

static void *churn(void *seed)
{
	unsigned random = (unsigned)(uintptr_t)seed;
	char *live[256] = { NULL };

	while (!stopped()) {
		unsigned k = (random = random * 1103515245 + 12345) >> 16 & 255;
		size_t size = 1 + (random >> 8) % (random % 64 ? 2000 : 300000);

		if (k & 1)
			free(live[k]), live[k] = malloc(size);
		else
			live[k] = realloc(live[k], size);
		CHECK(live[k]);
		memset(live[k], (int)random, size);
	}
	for (unsigned k = 0; k < 256; k++)
		free(live[k]);
	return NULL;
}

static void wait_for_rounds(unsigned n)
{
	unsigned until = __atomic_load_n(&rounds, __ATOMIC_RELAXED) + n;

	while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < until)
		sched_yield();
}

int main(void)
{
	pthread_t t[4];
	char *volatile overrun = malloc(100), *volatile freed = malloc(70000), *volatile large = malloc(500000);

	CHECK(overrun && freed && large && dg_root->options.on_error == DG_CONTINUE);
	CHECK(!pthread_create(&t[0], NULL, checker, NULL));
	for (uintptr_t i = 1; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, churn, (void *)i));
	wait_for_rounds(100);
	CHECK(dg_root->error_count == 0);
	overrun[100] = 1;
	large[-5] = 1;
	free(freed);
	freed[9] = 1;
	wait_for_rounds(20);
	CHECK(dg_root->error_count == 3);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(dg_root->error_count == 3);
	puts("ok");
	return 0;
}
