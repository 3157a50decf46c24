/* Threads pass numbers through a queue; main calls mix often without an event between the calls.
   What a probe must say of them, the program knows itself: it counts. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIXES = 120000, ITEMS = 300, WORKERS = 3 };

enum kind { SMALL, LARGE };

struct item {
    struct item *next;
    int key;
    enum kind kind;
    char name[12];
};

struct queue {
    pthread_mutex_t lock;
    size_t len;
    struct item *head;
};

struct queue jobs = {PTHREAD_MUTEX_INITIALIZER, 0, NULL};
unsigned long mixed, pushed, popped;
volatile long signals;
static __thread double load;
static __thread unsigned long big;

__attribute__((noinline)) unsigned long mix(unsigned long n, unsigned long seed)
{
    unsigned long h = n * 2654435761u;
    h ^= seed;
    mixed++;
    return h >> 7;
}

__attribute__((noinline)) double weigh(int key, double factor)
{
    return key * factor;
}

static inline __attribute__((always_inline)) int is_large(struct item *item)
{
    int large = item->key > 200;
    big += large;
    return large;
}

__attribute__((noinline)) void push(struct queue *q, struct item *item)
{
    pthread_mutex_lock(&q->lock);
    item->next = q->head;
    q->head = item;
    q->len++;
    pushed++; /* PUSHED */
    pthread_mutex_unlock(&q->lock);
}

__attribute__((noinline)) struct item *pop(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct item *item = q->head;
    if (item) {
        q->head = item->next;
        q->len--;
        popped++;
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}

__attribute__((noinline)) unsigned long fold(unsigned long n)
{
    if (n < 2)
        return n;
    return fold(n - 1) + fold(n - 2);
}

static void *worker(void *arg)
{
    long self = (long)arg;
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = calloc(1, sizeof *item);
        int key = (int)(self * 100 + i % 100);
        item->key = key;
        item->kind = is_large(item) ? LARGE : SMALL;
        snprintf(item->name, sizeof item->name, "job %d", item->key);
        push(&jobs, item); /* from now on it is any thread's */
        load += weigh(key, 0.5);
        if (i % 3 == 0)
            free(pop(&jobs));
    }
    return NULL;
}

static void handler(int number) { signals += number; }

int main(void)
{
    pthread_t threads[WORKERS];
    unsigned long sum = 0;
    signal(SIGUSR1, handler);
    for (unsigned long i = 0; i < MIXES; i++)
        sum += mix(i, sum);
    for (long i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    raise(SIGUSR1);
    sum += fold(10);
    if (write(1, &sum, sizeof sum) != sizeof sum || sum)
        abort();
    return 0;
}
