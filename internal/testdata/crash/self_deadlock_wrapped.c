// A function locks a mutex that its caller holds, by the program's own function for that.
// FLAGS: -pthread
// HANG: the one thread waits for itself
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

__attribute__((noinline, noipa)) static void xlock(pthread_mutex_t *mutex)
{
    if (pthread_mutex_lock(mutex) != 0)
        abort();
}

static void xunlock(pthread_mutex_t *mutex)
{
    if (pthread_mutex_unlock(mutex) != 0)
        abort();
}

__attribute__((noinline, noipa)) static void add(int n)
{
#ifndef FIXED
    // WANT: deadlock:@LINE+1
    xlock(&lock);
#endif
    count += n;
#ifndef FIXED
    xunlock(&lock);
#endif
}

int main(void)
{
    xlock(&lock);
    add(2);
    xunlock(&lock);
    return count != 2;
}
