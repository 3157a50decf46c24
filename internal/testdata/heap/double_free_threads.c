// The main thread and its worker both think that the task is theirs to free.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#include "lib/hide.h"

struct task {
    long input, output;
    char name[100];
};

static pthread_barrier_t freed, stop;

static void *worker(void *argument)
{
    struct task *t = argument;
    t->output = t->input + 1;
#ifndef FIXED
    free(t); // @first
#endif
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&stop);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&freed, NULL, 2);
    pthread_barrier_init(&stop, NULL, 2);
    struct task *t = hide((struct task *)calloc(1, sizeof *t)); // @made
    pthread_create(&thread, NULL, worker, t);
    pthread_barrier_wait(&freed);
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=120 alloc:@made(main) free:@first(worker) call:@LINE+1(main)
    free(hide(t));
    pthread_barrier_wait(&stop);
    return pthread_join(thread, NULL);
}
