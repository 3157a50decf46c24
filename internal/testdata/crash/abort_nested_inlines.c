// abort() after three calls that an optimising compiler dissolves.
#include <stdlib.h>

static volatile int state = 3;

static inline __attribute__((always_inline)) void fail(int code)
{
    if (code)
        // WANT: abort:@LINE+1
        abort();
}

static inline __attribute__((always_inline)) void check(int s)
{
    fail(s & 1);
}

static inline __attribute__((always_inline)) void verify(int s)
{
    if (s > 0)
        check(s);
}

__attribute__((noinline, noipa)) static int step(void)
{
    verify(state);
    return state;
}

int main(void)
{
#ifdef FIXED
    state = 2;
#endif
    return step() != 2;
}
