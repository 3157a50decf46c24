/* A handler of SIGABRT that allocates and jumps out, as test frameworks have:
 * the thread has its heap again. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "support_agent.h"

static sigjmp_buf back;
static volatile int aborts;

static void on_abort(int signal)
{
	void *p[200];

	(void)signal;
	for (unsigned i = 0; i < 200; i++) {
		CHECK((p[i] = malloc(i * 37)));
		memset(p[i], 1, i * 37);
	}
	for (unsigned i = 0; i < 200; i++)
		free(p[i]);
	aborts++;
	siglongjmp(back, 1);
}

static void twice(void)
{
	void *volatile p = malloc(30);

	free(p);
	free(p);
}

static void overflow(void)
{
	char *volatile p = malloc(30);

	p[31] = 1;
	free(p);
}

/* Found when the object is to be reused, in the middle of malloc. */
static void write_after_free(void)
{
	char *volatile p = malloc(3000);

	free(p);
	p[5] = 1;
	for (unsigned i = 0; i < 100000; i++)
		free(malloc(3000));
}

static void resize(void)
{
	char *volatile p = malloc(300000);

	p[-1] = 1;
	p = realloc(p, 4000000);
}

int main(void)
{
	static void (*const errors[])(void) = { twice, overflow, write_after_free, resize };
	unsigned long shared = agent_heap(0)->allocations;

	CHECK(signal(SIGABRT, on_abort) != SIG_ERR);
	for (volatile unsigned i = 0; i < 8; i++)
		if (!sigsetjmp(back, 1)) {
			errors[i % 4]();
			CHECK(!"found");
		}
	for (unsigned i = 0; i < 10000; i++)
		free(malloc(i));
	CHECK(aborts == 8 && agent_root()->error_count == 8);
	CHECK(agent_heap(0)->allocations == shared && agent_heap(1)->busy == 0);
	puts("ok");
	return 0;
}
