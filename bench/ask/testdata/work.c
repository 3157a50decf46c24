/* Two threads compute for about a second in all, and share a sum under a lock. */
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 1000, THREADS = 2, STEPS = 400000 };

struct sum {
    pthread_mutex_t lock;
    long total;
};

static struct sum *sum;
volatile long rounds;

__attribute__((noinline)) static unsigned long compute(unsigned long seed)
{
    for (int i = 0; i < STEPS; i++)
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed;
}

__attribute__((noinline)) static long add(struct sum *s, long by)
{
    pthread_mutex_lock(&s->lock);
    s->total += by;
    long now = s->total;
    rounds++; /* COUNT */
    pthread_mutex_unlock(&s->lock);
    return now;
}

static void *work(void *arg)
{
    unsigned long seed = (unsigned long)arg;
    for (int i = 0; i < ROUNDS; i++)
        add(sum, (seed = compute(seed)) >> 60);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    sum = calloc(1, sizeof *sum);
    pthread_mutex_init(&sum->lock, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    abort();
}
