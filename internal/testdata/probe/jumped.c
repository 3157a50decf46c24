/* A call that longjmp leaves, and later a jump to the instruction after it, in a frame at the same place. */
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf out;
static volatile int steps;

__attribute__((noinline)) int third(int n)
{
    steps++;
    if (n < 3)
        longjmp(out, 1);
    return n + 70;
}

__attribute__((noinline)) int maybe(int n)
{
    if (n & 1)
        third(n);
    steps += n;
    return steps;
}

/* Overwrites the stack below the frame of main, as calls do. */
#define OVERWRITE() __asm__ volatile(".rept 16\n\tpush $0\n\t.endr\n\tadd $128, %%rsp" : : : "memory", "cc")

int main(void)
{
    for (volatile int n = 1; n < 5; n++) {
        if (setjmp(out) == 0)
            steps += maybe(n);
        OVERWRITE();
    }
    abort();
}
