// A crash in the handler of a crash, on an alternate stack.
// KERNEL: gdb stops at the first crash
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int *volatile first, *volatile second;
static int real;

__attribute__((noinline, noipa)) static void report(int *p)
{
    // WANT: null-pointer write:@LINE+1
    *p = 2;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    report(second);
    if (second)
        _exit(0);
}

__attribute__((noinline, noipa)) static int work(int *p)
{
    return *p + 1;
}

int main(void)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
#ifdef FIXED
    second = &real;
#endif
    return work(first);
}
