// Three threads, three mutexes, each takes its own and then its neighbour's.
// FLAGS: -pthread
// HANG: all threads wait
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t seated;

static void *philosopher(void *arg)
{
    long n = (long)arg;
#ifdef FIXED
    long low = n < (n + 1) % 3 ? n : (n + 1) % 3, high = n < (n + 1) % 3 ? (n + 1) % 3 : n;
#else
    long low = n, high = (n + 1) % 3;
#endif
    pthread_mutex_lock(&forks[low]);
#ifndef FIXED
    pthread_barrier_wait(&seated);
#endif
    // WANT: deadlock:@LINE+1
    pthread_mutex_lock(&forks[high]);
    pthread_mutex_unlock(&forks[high]);
    pthread_mutex_unlock(&forks[low]);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    pthread_barrier_init(&seated, NULL, 3);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, philosopher, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
