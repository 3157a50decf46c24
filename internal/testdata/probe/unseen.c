/* Returns to an instruction at which no thread can be stopped: a system call. */
#include <stdlib.h>

static volatile int calls;

__attribute__((noinline, used)) int number(void)
{
    calls++;
    return 39; /* getpid */
}

__attribute__((noinline)) int plain(void)
{
    return number() + calls;
}

int main(void)
{
    for (volatile int i = 0; i < 3; i++)
        __asm__ volatile("call number\n\tsyscall" : : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    calls += plain();
    abort();
}
