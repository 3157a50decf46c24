/* A queue of work with a count that is wrong in the end: a cancelled job that was the last one is
   counted twice. FIXED does not have the bug. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum state { WAITING, CANCELLED };

struct job {
    struct job *next;
    unsigned number : 20;
    enum state state : 4;
    union {
        long weight;
        char letters[8];
    };
};

static struct {
    pthread_mutex_t lock;
    struct job *first, *last;
    int count;
} work = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL, 0};

__attribute__((noinline)) int heavier(const struct job *a, long weight)
{
    return a->weight > weight;
}

static void add(unsigned number)
{
    struct job *job = calloc(1, sizeof *job);
    job->number = number;
    job->weight = number * 3;
    pthread_mutex_lock(&work.lock);
    if (work.last)
        work.last->next = job;
    else
        work.first = job;
    work.last = job;
    work.count++;
    pthread_mutex_unlock(&work.lock);
}

static void cancel(unsigned number)
{
    pthread_mutex_lock(&work.lock);
    struct job *before = NULL;
    for (struct job *job = work.first; job; before = job, job = job->next) {
        if (job->number != number)
            continue;
        job->state = CANCELLED;
        if (before)
            before->next = job->next;
        else
            work.first = job->next;
        work.count--;
        if (work.last == job) {
            work.last = before;
#ifndef FIXED
            work.count--;
#endif
        }
        free(job);
        break;
    }
    pthread_mutex_unlock(&work.lock);
}

static void *worker(void *argument)
{
    unsigned self = (unsigned)(long)argument;
    for (unsigned i = 0; i < 40; i++) {
        unsigned number = self * 1000 + i;
        add(number);
        if (i % 8 == 7)
            cancel(number - 2);
        if (self == 2 && i == 30)
            cancel(number); /* the last one */
    }
    return NULL;
}

int main(void)
{
    int jobs = 0;
    for (long i = 1; i <= 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, worker, (void *)i);
        pthread_join(thread, NULL);
    }
    for (struct job *job = work.first; job; job = job->next)
        jobs += heavier(job, -1);
    if (jobs != work.count)
        abort();
    printf("%d jobs\n", jobs);
    return 0;
}
