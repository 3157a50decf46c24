// Atomic instructions that fault, and are executed again when a handler has made their memory accessible, while another thread
// uses the word and a timer's signals come.
// ENDS: SIGABRT
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { ROUNDS = 20, TURNS = 100000 };

static atomic_long count, ticks, faults;
static char *page;

static void on_tick(int signal)
{
	(void)signal;
	atomic_fetch_add(&ticks, 1);
}

static void on_fault(int signal)
{
	(void)signal;
	atomic_fetch_add(&faults, 1);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void *work(void *arg)
{
	long *sum = arg;

	for (int i = 0; i < TURNS; i++)
		*sum = *sum * 31 + atomic_fetch_add(&count, 1);
	return NULL;
}

int main(void)
{
	struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	pthread_t threads[2];
	static long sums[2];

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGSEGV, on_fault);
	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, &sums[i]);
	for (int i = 0; i < ROUNDS; i++) {
		atomic_fetch_add((atomic_int *)page, 3);
		mprotect(page, 4096, PROT_NONE);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (faults == ROUNDS)
		abort();
	return 1;
}
