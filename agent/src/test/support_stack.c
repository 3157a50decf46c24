/* How much stack the agent needs, at most: threads with the smallest stacks and
 * handlers on the smallest alternate stacks allocate. Linked with -z now, as
 * the dynamic linker's own binding of a symbol takes more than all of this. */
#define _GNU_SOURCE
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support_agent.h"

#define STACK (256u << 10)
#define BOUND 1800u

static char *stack;
static void *volatile object;
static volatile int handled;

static void nothing(void)
{
}

static void small(void)
{
	object = malloc(40);
}

static void resize(void)
{
	object = realloc(object, 3000);
}

static void grow(void)
{
	object = realloc(object, 3000000);
}

static void large(void)
{
	free(object);
	object = malloc(300000);
}

static void many(void)
{
	for (size_t i = 0; i < 6000; i++) {
		object = realloc(object, i % 300 * 13 + 1);
		free(object);
		object = NULL;
	}
}

static void wild(void)
{
	free((void *)((char *)&object + 8));
}

static void twice(void)
{
	object = malloc(30);
	free(object);
	free(object);
	malloc_usable_size(object);
	object = NULL;
}

static void overflow(void)
{
	char *volatile p = object = malloc(30);

	p[30] = 1;
	free(object);
	object = NULL;
}

/* Bytes of stack that a call took. */
static size_t depth(void (*call)(void))
{
	char *top = __builtin_frame_address(0), *at;

	/* Not this frame, nor that of memset. */
	memset(stack, 0xa5, (size_t)(top - 512 - stack));
	call();
	for (at = stack; (unsigned char)*at == 0xa5;)
		at++;
	return (size_t)(top - at);
}

static void *measure(void *unused)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} calls[] = {
		{ "first", small }, { "resize", resize }, { "grow", grow }, { "large", large },
		{ "many", many }, { "wild", wild }, { "twice", twice }, { "overflow", overflow },
	};
	size_t base = depth(nothing), d;

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d = depth(calls[i].call) - base;
		if (getenv("SUPPORT_DEPTHS"))
			fprintf(stderr, "%s %zu\n", calls[i].name, d);
		CHECK(d < BOUND);
	}
	return unused;
}

static void on_signal(int signal)
{
	(void)signal;
	object = malloc(5000);
	CHECK(object);
	free(object);
	object = NULL;
	many();
	handled++;
}

static void *least(void *unused)
{
	char *low = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = { .ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048 };

	CHECK(alternate.ss_size <= 2 * 4096);
	CHECK(low != MAP_FAILED && !mprotect(low + 4096, 2 * 4096, PROT_READ | PROT_WRITE));
	alternate.ss_sp = low + 3 * 4096 - alternate.ss_size;
	CHECK(!sigaltstack(&alternate, NULL));
	many();
	CHECK(!raise(SIGUSR1));
	return unused;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_attr_t a;
	pthread_t t;

	agent_root();
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	CHECK(!pthread_attr_init(&a) && !pthread_attr_setstack(&a, stack, STACK));
	CHECK(!pthread_create(&t, &a, measure, NULL) && !pthread_join(t, NULL));
	/* wild, twice: at the free and in its size; overflow */
	CHECK(agent_root()->error_count == 4);

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!pthread_attr_init(&a) && !pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN));
	CHECK(!pthread_create(&t, &a, least, NULL) && !pthread_join(t, NULL));
	CHECK(handled == 1 && agent_root()->error_count == 4);
	puts("ok");
	return 0;
}
