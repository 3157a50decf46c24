/* Two threads take two locks in both orders; the handler of SIGTERM and SIGINT removes a file and raises the signal again. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void clean(int number)
{
	unlink("no such file");
	signal(number, SIG_DFL);
	raise(number);
}
static void *one(void *arg)
{
	pthread_mutex_lock(&a);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return arg;
}
static void *two(void *arg)
{
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}
int main(void)
{
	pthread_t t, u;
	signal(SIGINT, clean);
	signal(SIGTERM, clean);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, one, NULL);
	pthread_create(&u, NULL, two, NULL);
	pthread_join(t, NULL);
	pthread_join(u, NULL);
	return 0;
}
