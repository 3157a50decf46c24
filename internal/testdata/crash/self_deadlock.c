// A function locks a mutex that its caller holds.
// FLAGS: -pthread
// HANG: the one thread waits for itself
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

__attribute__((noinline, noipa)) static void add(int n)
{
#ifndef FIXED
    // WANT: deadlock:@LINE+1
    pthread_mutex_lock(&lock);
#endif
    count += n;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

int main(void)
{
    pthread_mutex_lock(&lock);
    add(2);
    pthread_mutex_unlock(&lock);
    return count != 2;
}
