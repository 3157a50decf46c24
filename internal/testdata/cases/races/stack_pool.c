/* Workers take jobs off a list. The bug: `if` instead of `while` around the wait, so that a worker that was woken may find the list
   empty, as another one was faster. The flag stop, which main sets at the end, has no part in it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct job { struct job *next; int n; };
struct pool { pthread_mutex_t lock; pthread_cond_t some; struct job *first; int stop; long sum; };
static struct pool pool = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };

static struct job *take(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	if (!p->stop && !p->first)
		pthread_cond_wait(&p->some, &p->lock);
	if (p->stop && !p->first) {
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	struct job *j = p->first;
	p->first = j->next;
	pthread_mutex_unlock(&p->lock);
	return j;
}

static void *work(void *arg)
{
	struct pool *p = arg;
	struct job *j;
	while ((j = take(p))) {
		for (volatile int i = 0; i < 3000; i++)
			;
		__atomic_add_fetch(&p->sum, j->n, __ATOMIC_RELAXED);
		free(j);
	}
	return NULL;
}

static void give(struct pool *p, int n)
{
	struct job *j = malloc(sizeof *j);
	j->n = n;
	pthread_mutex_lock(&p->lock);
	j->next = p->first;
	p->first = j;
	pthread_cond_broadcast(&p->some);
	pthread_mutex_unlock(&p->lock);
}

int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, &pool);
	for (int i = 0; i < 25; i++) {
		give(&pool, i);
		for (volatile int k = 0; k < 8000; k++)
			;
	}
	pthread_mutex_lock(&pool.lock);
	pool.stop = 1;
	pthread_cond_broadcast(&pool.some);
	pthread_mutex_unlock(&pool.lock);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", pool.sum);
}
