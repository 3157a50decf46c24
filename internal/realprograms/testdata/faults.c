/* Handles its own SIGSEGV: probes addresses, grows memory on demand as some
 * garbage collectors do, and leaves a handler on an alternate stack by
 * longjmp. Other signals interrupt the heap itself and allocate. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf out;
static char *area;
static volatile int grown, ticks, probing;

static void fault(int sig, siginfo_t *info, void *context)
{
	char *at = info->si_addr;

	(void)sig, (void)context;
	if (!probing && at >= area && at < area + (64 << 20)) {
		mprotect((char *)((uintptr_t)at & -65536ul), 65536, PROT_READ | PROT_WRITE);
		grown++;
		return;
	}
	siglongjmp(out, 1);
}

/* malloc in a handler is not allowed by the standard, and done all the same. */
static void tick(int sig)
{
	int saved = errno;

	(void)sig;
	ticks++;
	free(malloc(ticks % 500 + 1));
	errno = saved;
}

static int readable(volatile char *p)
{
	volatile int ok = 0;

	probing = 1;
	if (!sigsetjmp(out, 1)) {
		(void)*p;
		ok = 1;
	}
	probing = 0;
	return ok;
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	int n = 0;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	area = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (int i = 0; i < 64 << 20; i += 65536)
		area[i] = 1;
	for (int i = 0; i < 1000; i++) {
		char *p = malloc(i * 37 % 5000 + 1);

		*p = 0;
		n += readable(p) + readable((char *)(intptr_t)(i * 8)) + readable((char *)0xdead000000000000);
		free(p);
	}
	printf("%d pages, %d readable\n", grown, n);
#ifdef TICKS
	struct sigaction alarm = {.sa_handler = tick, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 200}, {0, 200}};

	sigaction(SIGALRM, &alarm, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	char *kept[64] = {0};

	for (int i = 0; i < 3000000 || ticks < 200; i++) {
		free(kept[i % 64]);
		kept[i % 64] = malloc(i % 700);
		if (kept[i % 64])
			memset(kept[i % 64], i, i % 700);
	}
	often = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &often, NULL);
	puts("ticked");
#endif
	return 0;
}
