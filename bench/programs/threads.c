// Starts ARGV[1] threads that wait, fills ARGV[2] MiB of heap, and crashes.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    int id;
    struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t started;
static struct job *queue;

static struct job *take(void)
{
    pthread_mutex_lock(&lock);
    while (!queue)
        pthread_cond_wait(&more, &lock);
    struct job *job = queue;
    queue = job->next;
    pthread_mutex_unlock(&lock);
    return job;
}

static void *worker(void *arg)
{
    pthread_barrier_wait(&started);
    return take() ? arg : NULL;
}

static int run(struct job *job)
{
    return job->next->id;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    size_t bytes = argc > 2 ? (size_t)atoi(argv[2]) << 20 : 0;
    char *heap = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i += 8)
        memcpy(heap + i, &i, 8);
    pthread_barrier_init(&started, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0)
            return 2;
    }
    pthread_barrier_wait(&started);
    usleep(100000); // the workers reach the condition variable
    struct job job = {argc, NULL};
    return run(&job);
}
