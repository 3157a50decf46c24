// The program fails when it has just made threads, some of which have not begun.
#include <pthread.h>

volatile int broken = 1, ran;
int *volatile where;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	ran++;
	pthread_mutex_unlock(&lock);
	return unused;
}

__attribute__((noinline)) int check(void) { return broken ? *where : 1; }

int main(void)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], 0, work, 0);
	check();
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], 0);
	return ran;
}
