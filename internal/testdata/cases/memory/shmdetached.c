/* gcc -g -O0, -O2: shared memory that main detached is read by a worker; "w->ring is bad because shmat returned it" */
#include <sys/mman.h>
#include <sys/shm.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
struct ring { unsigned head, tail; int slots[4096]; };
struct worker { struct ring *ring; int sum; };
static pthread_barrier_t gone;
static void *drain(void *arg)
{
    struct worker *w = arg;
    pthread_barrier_wait(&gone);
    pthread_barrier_wait(&gone);
    for (unsigned i = 0; i < 16; i++)
        w->sum += w->ring->slots[i];
    return NULL;
}
int main(void)
{
    int id = shmget(IPC_PRIVATE, sizeof(struct ring), IPC_CREAT | 0600);
    struct worker w = {0};
    w.ring = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    w.ring->slots[3] = 4;
    pthread_t t;
    pthread_barrier_init(&gone, NULL, 2);
    pthread_create(&t, NULL, drain, &w);
    pthread_barrier_wait(&gone);
    shmdt(w.ring);  /* FLAW */
    pthread_barrier_wait(&gone);
    pthread_join(t, NULL);
    printf("%d\n", w.sum);
}
