// An access of a global variable faults: the handler resumes it the first time, and
// the second time it ends the process.
// ENDS: SIGSEGV
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
	long value, rest[1023];
} page __attribute__((aligned(4096)));
static long started;
static void *where;

static void repair(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)signal;
	if (info->si_addr != &page.value)
		_exit(2);
	where = (void *)uc->uc_mcontext.gregs[REG_RIP];
	mprotect(&page, sizeof(page), PROT_READ | PROT_WRITE);
}

static __attribute__((noinline)) void store(long value)
{
	page.value = value; // FAULT
}

static void *other(void *arg)
{
	for (int i = 0; i < 20; i++)
		started++;
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = repair, .sa_flags = SA_SIGINFO };
	pthread_t t;

	sigaction(SIGSEGV, &action, NULL);
	pthread_create(&t, NULL, other, NULL);
	mprotect(&page, sizeof(page), PROT_READ);
	store(7);
	if (page.value != 7 || (char *)where < (char *)store || (char *)where > (char *)store + 64)
		return 3;
	pthread_join(t, NULL);
	signal(SIGSEGV, SIG_DFL);
	mprotect(&page, sizeof(page), PROT_NONE);
	store(8);
	return 4;
}
