/* The program's own handlers: the agent installs none, changes none, and is
 * usable in them, on the stack that was interrupted and on another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "support_agent.h"

static sigjmp_buf back;
static volatile int faults, ticks, large;
static void *volatile held;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	void *p = malloc(1000);

	(void)signal;
	(void)context;
	CHECK(p && info->si_addr == (void *)16);
	free(p);
	faults++;
	siglongjmp(back, 1);
}

/* Interrupts malloc and free themselves now and then, where libc's would
 * deadlock. Objects of up to some KiB are always to be had, a large one only if
 * the interrupted call holds no lock. */
static void on_tick(int signal)
{
	void *p = malloc(40), *q = malloc(200000), *r = aligned_alloc(512, 5000 + ticks % 1000);

	(void)signal;
	CHECK(p && r);
	p = realloc(p, ticks % 8000 + 1);
	CHECK(p);
	large += q != NULL;
	free(r);
	free(q);
	free(p);
	ticks++;
}

static void *ticker(void *target)
{
	for (unsigned i = 0; i < 3000; i++) {
		int seen = ticks;

		if (pthread_kill(*(pthread_t *)target, SIGUSR1))
			break;
		while (ticks == seen)
			sched_yield();
	}
	return NULL;
}

static ucontext_t here, there;

static void coroutine(void)
{
	for (unsigned i = 0; i < 100; i++) {
		held = malloc(64);
		swapcontext(&there, &here);
		free(held);
	}
}

/* A stack whose neighbours are not mapped: a walk beyond it would fault. */
static void *lone_stack(size_t size)
{
	char *p = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED && !mprotect(p + 4096, size, PROT_READ | PROT_WRITE));
	return p + 4096;
}

int main(void)
{
	struct sigaction action, old;
	stack_t stack = { .ss_size = 65536 };
	pthread_t self = pthread_self(), t;
	volatile int *volatile nowhere = (volatile int *)16;

	agent_root();
	for (int signal = 1; signal < NSIG; signal++)
		if (!sigaction(signal, NULL, &old))
			CHECK(old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN);

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	for (unsigned i = 0; i < 20; i++) {
		if (i == 10) {
			stack.ss_sp = lone_stack(stack.ss_size);
			CHECK(!sigaltstack(&stack, NULL));
		}
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
	}
	CHECK(faults == 20);
	CHECK(!sigaction(SIGSEGV, NULL, &old) && old.sa_sigaction == on_fault);

	signal(SIGUSR1, on_tick);
	CHECK(!pthread_create(&t, NULL, ticker, &self));
	for (unsigned i = 0; ticks < 3000; i++) {
		held = malloc(1 + i % 3000);
		CHECK(held);
		free(held);
	}
	CHECK(!pthread_join(t, NULL));
	CHECK(large > 0);

	CHECK(!getcontext(&there));
	there.uc_stack.ss_sp = lone_stack(65536);
	there.uc_stack.ss_size = 65536;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	for (unsigned i = 0; i < 100; i++)
		CHECK(!swapcontext(&here, &there));

	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
