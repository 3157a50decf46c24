// A recursion without an end, in a thread with a small stack.
// FLAGS: -pthread
#include <pthread.h>
#include <stddef.h>

#ifdef FIXED
#define DEPTH 10
#else
#define DEPTH 100000000
#endif

static volatile int sum;

// WANT: stack-overflow write:@LINE+1..+7
__attribute__((noinline, noipa)) static int descend(int n)
{
    volatile char room[200];
    room[0] = (char)n;
    if (n < DEPTH) sum += descend(n + 1);
    return sum + room[0];
}

static void *work(void *arg)
{
    descend(0);
    return arg;
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 << 10);
    pthread_create(&thread, &attr, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
