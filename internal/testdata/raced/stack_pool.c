// A worker that was woken does not look again: another one may have taken the last job. The flag stop, which main's end sets, has no part in it.
// NOT: stop
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
	struct job *next;
	int number;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct job *first;
	int stop;
	long sum;
};

static struct pool pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

static void pause_for(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static struct job *take(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	if (!p->stop && !p->first) // BUG
		pthread_cond_wait(&p->some, &p->lock);
	if (p->stop && !p->first) {
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	struct job *taken = p->first;
	p->first = taken->next; // BUG
	pthread_mutex_unlock(&p->lock);
	return taken;
}

static void *work(void *arg)
{
	struct pool *p = arg;
	for (struct job *j; (j = take(p)); free(j)) {
		pause_for(3000);
		__atomic_add_fetch(&p->sum, j->number, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void give(struct pool *p, int number)
{
	struct job *j = malloc(sizeof *j);
	j->number = number;
	pthread_mutex_lock(&p->lock);
	j->next = p->first; // BUG
	p->first = j; // BUG
	pthread_cond_broadcast(&p->some);
	pthread_mutex_unlock(&p->lock);
	pause_for(8000);
}

int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, &pool);
	for (int i = 0; i < 25; i++)
		give(&pool, i);
	pthread_mutex_lock(&pool.lock);
	pool.stop = 1;
	pthread_cond_broadcast(&pool.some);
	pthread_mutex_unlock(&pool.lock);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", pool.sum);
	return 0;
}
