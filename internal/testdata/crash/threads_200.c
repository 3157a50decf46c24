// Two hundred threads wait for work while the main one crashes.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#define THREADS 200

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    int waiting, stop;
};
static struct pool *pool;
static struct pool *volatile active;

static void *worker(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    if (++p->waiting == THREADS)
        pthread_cond_signal(&p->idle);
    while (!p->stop)
        pthread_cond_wait(&p->work, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

__attribute__((noinline, noipa)) static void stop(struct pool *p)
{
    // WANT: null-pointer write:@LINE+1
    p->stop = 1;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pool = calloc(1, sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], &attr, worker, pool);
    pthread_mutex_lock(&pool->lock);
    while (pool->waiting < THREADS)
        pthread_cond_wait(&pool->idle, &pool->lock);
#ifdef FIXED
    active = pool;
#endif
    stop(active);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
