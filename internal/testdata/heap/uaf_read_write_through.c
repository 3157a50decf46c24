// A freed queue's tail pointer is followed for a store.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#include "lib/hide.h"

struct item {
    struct item *next;
    int number;
};

struct queue {
    struct item *head, *tail;
    pthread_mutex_t mutex;
};

static struct queue *queue;
static struct item first, second = {NULL, 2};

static void *producer(void *unused)
{
    // WANT: use-after-free write:@LINE+1
    queue->tail->next = hide(&second);
    return unused;
}

int main(void)
{
    queue = hide((struct queue *)calloc(1, sizeof *queue)); // @made
    queue->head = queue->tail = &first;
#ifndef FIXED
    free(queue); // @freed
#endif
    // HEAP: use-after-free object=56 alloc:@made(main) free:@freed(main)
    pthread_t t;
    pthread_create(&t, NULL, producer, NULL);
    pthread_join(t, NULL);
#ifdef FIXED
    free(queue);
#endif
    return first.next != &second;
}
