// Prints the frame that its handler gets, but for what differs by itself:
// addresses, and which registers the processor holds to be in use.
// ENDS: exit 8
// EVENTS: signal 1
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static uint8_t values[256] __attribute__((aligned(64)));
static char text[8192];
static size_t used;

static void put(const char *name, const void *p, size_t n)
{
	used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", name);
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%02x", i % 32 ? "" : " ", ((const uint8_t *)p)[i]);
	used += (size_t)snprintf(text + used, sizeof(text) - used, "\n");
}

static void put_number(const char *name, uint64_t n)
{
	put(name, &n, sizeof(n));
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	const uint8_t *fp = (const uint8_t *)uc->uc_mcontext.fpregs;
	const uint64_t *frame = (const uint64_t *)context - 1;
	uint32_t size, end;

	(void)signal;
	put_number("frame mod 16", (uintptr_t)frame % 16);
	put_number("info behind the context", (uintptr_t)info - (uintptr_t)context);
	put_number("fpregs mod 64", (uintptr_t)fp % 64);
	put_number("flags", uc->uc_flags);
	put_number("link", (uintptr_t)uc->uc_link);
	/* A main thread that never set one has 0 from the kernel, not SS_DISABLE. */
	put_number("stack", (uintptr_t)uc->uc_stack.ss_sp);
	put_number("stack's size", uc->uc_stack.ss_size);
	put_number("stack's flags", (uint64_t)(uc->uc_stack.ss_flags & ~SS_DISABLE));
	put("mask", &uc->uc_sigmask, 8);
	put_number("selectors", (uint64_t)uc->uc_mcontext.gregs[REG_CSGSFS]);
	put_number("old mask", (uint64_t)uc->uc_mcontext.gregs[REG_OLDMASK]);
	put("x87", fp, 6);
	put("mxcsr", fp + 24, 8);
	put("registers", fp + 32, 128);
	put("xmm", fp + 160, 256);
	put("magic1, extended size, features, size", fp + 464, 20);
	memcpy(&size, fp + 480, 4);
	memcpy(&end, fp + size, 4);
	put_number("magic2", end);
	put("compaction and reserved", fp + 520, 56);
	/* AVX follows the header wherever it is there. */
	put("ymm", fp + 576, 256);
	write(1, text, used);
	_exit(8);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigset_t some;
	long result, self = getpid();

	for (size_t i = 0; i < sizeof(values); i++)
		values[i] = (uint8_t)(i * 7 + 1);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	sigprocmask(SIG_BLOCK, &some, NULL);
	sigaction(SIGUSR1, &action, NULL);
	__asm__ volatile("fldl (%3)\n\t"
			 "movdqa (%3), %%xmm0\n\t"
			 "movdqa 16(%3), %%xmm7\n\t"
			 "movdqa 32(%3), %%xmm15\n\t"
			 "syscall"
			 : "=a"(result)
			 : "0"(62L), "D"(self), "r"(values), "S"((long)SIGUSR1)
			 : "rcx", "r11", "memory", "xmm0", "xmm7", "xmm15");
	return (int)result;
}
