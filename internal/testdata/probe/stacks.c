/* Calls that are open on several stacks of a thread at a time: of coroutines, and of a signal handler. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { SIZE = 64 << 10, COROUTINES = 3 };

static ucontext_t home, others[COROUTINES];
static volatile int steps;
static jmp_buf out;

__attribute__((noinline)) int helper(int n)
{
    steps++;
    return n + 1;
}

__attribute__((noinline)) int waits(int self, int n)
{
    int before = helper(n);
    swapcontext(&others[self], &home);
    return before * 10 + self;
}

static void coroutine(int self)
{
    for (int n = 0; n < 3; n++)
        steps += waits(self, n);
}

__attribute__((noinline)) int handled(int n)
{
    steps++;
    return helper(n) + 100;
}

static void handler(int signal)
{
    (void)signal;
    steps += handled(steps > 0);
}

__attribute__((noinline)) int interrupted(int n)
{
    raise(SIGUSR1);
    return n + 7;
}

__attribute__((noinline)) int leaves(int n)
{
    if (n)
        longjmp(out, 1);
    return n + 50;
}

__attribute__((noinline)) int resumes(int n)
{
    for (int i = 0; i < COROUTINES; i++)
        swapcontext(&home, &others[i]);
    return n + 1000;
}

int main(void)
{
    static char fixed[SIZE];
    char *stacks[COROUTINES] = {fixed, malloc(SIZE), mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    stack_t other = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&others[i]);
        others[i].uc_stack.ss_sp = stacks[i];
        others[i].uc_stack.ss_size = SIZE;
        others[i].uc_link = &home;
        makecontext(&others[i], (void (*)(void))coroutine, 1, i);
    }
    for (int n = 0; n < 4; n++) {
        steps += resumes(n);
        steps += interrupted(n);
    }
    for (volatile int n = 0; n < 2; n++)
        if (setjmp(out) == 0)
            steps += leaves(n);
    helper(1);
    abort();
}
