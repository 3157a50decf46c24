// A job is marked as ready before its name is set.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	int number, ready;
	char *name;
};
static struct job jobs[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, stats = PTHREAD_MUTEX_INITIALIZER;
static long made, seen, letters;

static void *maker(void *arg)
{
	for (int i = 0; i < 8; i++) {
		usleep(40);
		pthread_mutex_lock(&lock);
		jobs[i].number = i;
		jobs[i].ready = 1; // BUG
		pthread_mutex_unlock(&lock);
		pthread_mutex_lock(&stats);
		made++;
		pthread_mutex_unlock(&stats);
		if (i == 5 && getpid() % 3 == 0)
			usleep(150);
		pthread_mutex_lock(&lock);
		jobs[i].name = strdup("a name"); // BUG
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void *looker(void *arg)
{
	for (int i = 0; i < 8;) {
		pthread_mutex_lock(&lock);
		int ready = jobs[i].ready; // BUG
		char *name = jobs[i].name; // BUG
		pthread_mutex_unlock(&lock);
		if (!ready) {
			usleep(60);
			continue;
		}
		pthread_mutex_lock(&stats);
		seen++;
		letters += strlen(name); // BUG
		pthread_mutex_unlock(&stats);
		i++;
	}
	return arg;
}

int main(void)
{
	pthread_t a, b;
	pthread_create(&a, NULL, maker, NULL);
	usleep(getpid() % 6 * 100);
	pthread_create(&b, NULL, looker, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%ld %ld %ld\n", made, seen, letters);
	return 0;
}
