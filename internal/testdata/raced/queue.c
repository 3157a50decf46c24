// A worker that was woken does not look again: another one may have emptied the queue. The flag done has no part in it.
// NOT: done
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int waiting, tasks[64], done;

static void pause_for(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static int take(void)
{
	pthread_mutex_lock(&lock);
	if (waiting == 0 && !done) // BUG
		pthread_cond_wait(&filled, &lock); // BUG
	if (done && waiting == 0) {
		pthread_mutex_unlock(&lock);
		return -1;
	}
	assert(waiting > 0); // BUG
	int task = tasks[--waiting]; // BUG
	pthread_mutex_unlock(&lock);
	return task;
}

static void add(int task)
{
	pthread_mutex_lock(&lock);
	tasks[waiting++] = task;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&lock);
}

static void *work(void *sum)
{
	for (int task; (task = take()) >= 0; *(long *)sum += task)
		pause_for(2000);
	return NULL;
}

int main(void)
{
	pthread_t t[3];
	long sum[3] = {0};
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, &sum[i]);
	for (int i = 0; i < 30; i++) {
		add(i);
		pause_for(6000);
	}
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", sum[0] + sum[1] + sum[2]);
	return 0;
}
