// Three threads, each waits for the next one's end.
// FLAGS: -pthread
// HANG: all threads wait
#include <pthread.h>
#include <stddef.h>

static pthread_t threads[3];
static pthread_barrier_t started, finished;

static void *work(void *arg)
{
    long n = (long)arg;
    int failed = 0;
    pthread_barrier_wait(&started);
#ifdef FIXED
    if (n != 0)
#endif
        // WANT: deadlock:@LINE+1
        failed = pthread_join(threads[(n + 1) % 3], NULL);
#ifdef FIXED
    if (n == 1)
#endif
        pthread_barrier_wait(&finished);
    return failed ? arg : NULL;
}

int main(void)
{
#ifdef FIXED
    int last = 2;
#else
    int last = 4;
#endif
    pthread_barrier_init(&started, NULL, 4);
    pthread_barrier_init(&finished, NULL, last);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_barrier_wait(&started);
    pthread_barrier_wait(&finished);
    return 0;
}
