// Locks that a thread which is alone takes again, of each kind: before the first other thread,
// between two of them, and after the last one, which is detached.
// ENDS: exit 0
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, counted;
static pthread_spinlock_t spin;
static atomic_int ended;
static int state;

static void visit(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&plain);
		state++;
		pthread_mutex_unlock(&plain);
		pthread_mutex_lock(&counted);
		pthread_mutex_lock(&counted);
		state++;
		pthread_mutex_unlock(&counted);
		pthread_mutex_unlock(&counted);
		pthread_spin_lock(&spin);
		state++;
		pthread_spin_unlock(&spin);
	}
}

static void *work(void *arg)
{
	visit(2);
	ended = 1;
	return arg;
}

int main(void)
{
	pthread_mutexattr_t recursive;
	pthread_t t;

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&counted, &recursive);
	pthread_spin_init(&spin, 0);
	visit(3);
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	visit(2);
	ended = 0;
	pthread_create(&t, NULL, work, NULL);
	pthread_detach(t);
	while (!ended)
		usleep(100);
	visit(4);
	free(malloc(16));
	visit(1);
	return state == 3 * 14 ? 0 : 1;
}
