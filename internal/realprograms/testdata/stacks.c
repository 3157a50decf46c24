/* Runs on stacks that the agent does not know: coroutines whose stacks are
 * heap objects, and threads with stacks of their own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ROUTINES 20

static ucontext_t home, routine[ROUTINES];
static long sum;

static int deep(int n)
{
	char *p = malloc(n * 3 + 1);
	int r;

	memset(p, n, n * 3 + 1);
	r = n ? deep(n - 1) + p[n] % 3 : 0;
	free(p);
	return r;
}

static void run(int k)
{
	for (int i = 0; i < 200; i++) {
		sum += deep(k + i % 30);
		swapcontext(&routine[k], &home);
	}
}

static void *thread(void *arg)
{
	return (void *)(long)deep((int)(long)arg);
}

int main(void)
{
	for (int k = 0; k < ROUTINES; k++) {
		getcontext(&routine[k]);
		routine[k].uc_stack.ss_sp = malloc(65536);
		routine[k].uc_stack.ss_size = 65536;
		routine[k].uc_link = &home;
		makecontext(&routine[k], (void (*)(void))run, 1, k);
	}
	for (int i = 0; i < 201; i++)
		for (int k = 0; k < ROUTINES; k++)
			swapcontext(&home, &routine[k]);
	for (int k = 0; k < ROUTINES; k++)
		free(routine[k].uc_stack.ss_sp);
	for (int i = 0; i < 300; i++) {
		pthread_attr_t attr;
		pthread_t t;
		void *result, *stack = i % 2 ? aligned_alloc(4096, 1 << 17) : NULL;

		pthread_attr_init(&attr);
		if (stack)
			pthread_attr_setstack(&attr, stack, 1 << 17);
		else
			pthread_attr_setstacksize(&attr, 1 << 16);
		if (pthread_create(&t, &attr, thread, (void *)(long)(i % 50)))
			return 1;
		pthread_join(t, &result);
		sum += (long)result;
		free(stack);
		pthread_attr_destroy(&attr);
	}
	printf("%ld\n", sum);
	return 0;
}
