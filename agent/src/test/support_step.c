/* A handler that allocates, resizes, frees and forks, called after each single
 * instruction of the agent: with the trap flag set the processor raises SIGTRAP
 * after every one, and the kernel clears the flag for the handler. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support_agent.h"

#define KEPT 16
#define FORK_EACH 20011

struct object {
	uint8_t *bytes;
	size_t size;
};

static struct object kept[KEPT]; /* by the handler, from one call to another */
static unsigned long steps, forks;

static void paint(struct object *o)
{
	CHECK(o->bytes);
	CHECK(malloc_usable_size(o->bytes) == o->size);
	memset(o->bytes, (int)o->size | 1, o->size);
}

static void verify(const struct object *o)
{
	for (size_t i = 0; i < o->size; i++)
		CHECK(o->bytes[i] == (uint8_t)(o->size | 1));
}

static size_t any_size(unsigned long n)
{
	static const size_t sizes[] = { 24, 100, 1000, 40, 300, 4096, 16, 2000 };

	return sizes[n % 8] + n / 8 % 7;
}

/* All that a handler may find half done must serve the child too. */
static void fork_here(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		alarm(20);
		for (unsigned long i = 0; i < 60; i++) {
			struct object o = { malloc(any_size(i)), any_size(i) };

			paint(&o);
			if (i & 1)
				free(o.bytes);
		}
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	forks++;
}

static void on_step(int signal)
{
	struct object *o = &kept[steps % KEPT];

	(void)signal;
	verify(o);
	switch (++steps % 5) {
	case 0:
		free(o->bytes);
		o->size = 0;
		o->bytes = calloc(1, 0);
		break;
	case 1:
		o->bytes = realloc(o->bytes, any_size(steps));
		o->size = any_size(steps);
		break;
	default:
		free(o->bytes);
		o->size = any_size(steps);
		o->bytes = steps & 1 ? malloc(o->size) : aligned_alloc(256, o->size);
	}
	paint(o);
	if (steps % FORK_EACH == 0)
		fork_here();
}

static void set_trap(int on)
{
	unsigned long flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | 0x100 : flags & ~0x100ul);
}

/* Each class for the first time, evictions, large objects, moves of pages. */
static void work(unsigned rounds)
{
	static __thread struct object own[32];
	unsigned long n = 0;

	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < 32; i++, n++) {
			struct object *o = &own[(i * 7 + round) % 32];
			size_t size = n % 41 == 40 ? 200000 + n : any_size(n * 5) + n % 13 * 16;

			set_trap(1);
			if (n % 3 == 0) {
				o->bytes = realloc(o->bytes, size);
			} else {
				free(o->bytes);
				o->bytes = n % 3 == 1 ? malloc(size) : memalign(64, size);
			}
			set_trap(0);
			o->size = size;
			paint(o);
			verify(&own[i]);
		}
	for (unsigned i = 0; i < 32; i++) {
		verify(&own[i]);
		set_trap(1);
		free(own[i].bytes);
		set_trap(0);
	}
}

/* A thread's first call; its end blocks all signals. */
static void *thread(void *unused)
{
	set_trap(1);
	free(malloc(100));
	set_trap(0);
	work(1);
	return unused;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	pthread_t t;

	agent_root();
	for (unsigned i = 0; i < KEPT; i++) {
		kept[i] = (struct object){ malloc(any_size(i)), any_size(i) };
		paint(&kept[i]);
	}
	CHECK(signal(SIGTRAP, on_step) != SIG_ERR);
	work(rounds);
	CHECK(!pthread_create(&t, NULL, thread, NULL));
	CHECK(!pthread_join(t, NULL));
	for (unsigned i = 0; i < KEPT; i++)
		verify(&kept[i]);
	CHECK(agent_heaps(DG_HEAP_OWNED) == 1);
	CHECK(steps > 100000 && forks > 3);
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	(void)argv;
	if (getenv("STEPS"))
		fprintf(stderr, "%lu steps %lu forks\n", steps, forks);
	return 0;
}
