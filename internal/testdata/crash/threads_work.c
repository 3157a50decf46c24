// One of three busy threads trips over an empty slot.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

struct job {
    int id;
    int *result;
};
static struct job jobs[3];
static int results[3];
static pthread_barrier_t ready, done;

__attribute__((noinline, noipa)) static void finish(struct job *job, int value)
{
    // WANT: null-pointer write:@LINE+1
    *job->result = value;
}

static void *work(void *arg)
{
    struct job *job = arg;
    int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += i * job->id;
    pthread_barrier_wait(&ready);
    if (job->id == 1)
        finish(job, sum);
    pthread_barrier_wait(&done);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    pthread_barrier_init(&ready, NULL, 3);
    pthread_barrier_init(&done, NULL, 3);
    for (int i = 0; i < 3; i++) {
        jobs[i].id = i;
#ifdef FIXED
        jobs[i].result = &results[i];
#endif
        pthread_create(&threads[i], NULL, work, &jobs[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return results[1] != 499500;
}
