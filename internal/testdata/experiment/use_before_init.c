/* A worker uses what its creator sets up later: nothing but luck is between. */
// ENDS: SIGSEGV
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct config {
	int workers;
} *config;
static int served, late[2];

static void *worker(void *arg)
{
	pthread_mutex_lock(&lock);
	served = config->workers;
	pthread_mutex_unlock(&lock);
	assert(write(late[1], "", 1) == 1);
	return arg;
}

int main(void)
{
	pthread_t t;
	char c;

	assert(!pipe(late));
	pthread_create(&t, NULL, worker, NULL);
	if (read(late[0], &c, 1) > 0)
		return 2;
	pthread_mutex_lock(&lock);
	config = malloc(sizeof(*config));
	config->workers = 4;
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	return served == 4 ? 0 : 1;
}
