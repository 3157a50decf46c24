/* Stacks of C: plain, recursive, of variable size, realigned, through callbacks
 * and signal frames, and of other threads. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support_unwind.h"

static volatile int sink;

static NOINLINE void leaf(const char *name, unsigned least)
{
	check(name, least);
	STAY();
}

static NOINLINE int recurse(int depth)
{
	int local[4] = { depth, depth + 1, depth + 2, depth + 3 };
	int below;

	sink = local[depth & 3];
	if (depth == 0) {
		leaf("recursion", 6);
		return 0;
	}
	below = recurse(depth - 1);
	return below + local[1];
}

static NOINLINE void with_alloca(size_t n)
{
	char *p = (char *)alloca(n);

	memset(p, 1, n);
	leaf("alloca", 4);
	sink = p[n - 1];
}

static NOINLINE void with_array(size_t n)
{
	char array[n];

	memset(array, 2, n);
	leaf("variable array", 4);
	sink = array[n - 1];
}

static NOINLINE void realigned(int n)
{
	char buffer[256] __attribute__((aligned(128)));

	memset(buffer, n, sizeof(buffer));
	leaf("realigned", 4);
	sink = buffer[n];
}

static NOINLINE void realigned_alloca(size_t n)
{
	char buffer[64] __attribute__((aligned(64)));
	char *p = (char *)alloca(n);

	memset(buffer, 1, sizeof(buffer));
	memset(p, 2, n);
	leaf("realigned with alloca", 4);
	sink = p[0] + buffer[n & 63];
}

static NOINLINE void large_frame(void)
{
	char buffer[200000];

	memset(buffer, 3, sizeof(buffer));
	leaf("large frame", 4);
	sink = buffer[777];
}

static NOINLINE void many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	leaf("arguments on the stack", 4);
	sink = a + b + c + d + e + f + g + h + i;
}

static int compare(const void *a, const void *b)
{
	static int once;

	if (!once++)
		leaf("callback of qsort", 6);
	return *(const int *)a - *(const int *)b;
}

static void handler(int signal)
{
	(void)signal;
	leaf("signal", 6);
}

/* The instruction that faults has no call before it. */
static volatile int skip;
static void fault_handler(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = (ucontext_t *)context;

	(void)signal;
	(void)info;
	leaf("fault", 5);
	u->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
}

static NOINLINE void fault(void)
{
	__asm__ volatile("ud2");
	skip++;
}

static void *thread(void *unused)
{
	(void)unused;
	sink = recurse(3);
	leaf("thread", 4);
	return NULL;
}

int main(void)
{
	int numbers[] = { 3, 1, 2 };
	struct sigaction action = { 0 };
	pthread_t t;

	leaf("plain", 4);
	for (int depth = 0; depth < 40; depth += 13)
		sink = recurse(10 + depth);
	for (size_t n = 16; n < 5000; n = n * 3 + 1) {
		with_alloca(n);
		with_array(n);
		realigned_alloca(n);
	}
	realigned(7);
	large_frame();
	many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9);
	qsort(numbers, 3, sizeof(int), compare);

	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	action.sa_sigaction = fault_handler;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &action, NULL);
	fault();

	if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
		return 1;
	printf("ok %u\n", checks);
	return 0;
}
