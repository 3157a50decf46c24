// A worker looks for work under the lock; whoever stops it does so without. Between the
// look and the wait the signal is lost, and the worker waits for ever. Threads reach
// everything through pointers, so no instruction names a variable.
// ENDS: exit 0
// CAUSE kind=order-violation variable=stop
// RUNS pass:
#include <pthread.h>
#include <stdatomic.h>

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	int jobs, done;
	_Atomic int stop;
};

static void *serve(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop || p->jobs) {
		if (p->jobs) {
			p->jobs--;
			p->done++;
		} else {
			pthread_cond_wait(&p->work, &p->lock);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int main(void)
{
	struct pool p = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER };
	pthread_t t;

	pthread_create(&t, NULL, serve, &p);
	pthread_mutex_lock(&p.lock);
	p.jobs++;
	pthread_cond_signal(&p.work);
	pthread_mutex_unlock(&p.lock);
	p.stop = 1;
	pthread_cond_signal(&p.work);
	pthread_join(t, NULL);
	return p.done != 1;
}
