// A controller books a delivery in two members of one tank, each under the lock; a meter that comes between them
// takes a level from both. Only much later, main finds the level to be wrong: its code reads none of the members.
// CAUSE kind=atomicity-violation pattern="two variables"
// FAILS signal=SIGABRT says="litres are missing"
// RUNS fail: 5 25
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct tank {
	char name[24];
	pthread_mutex_t lock;
	long poured, stored;
};
struct reading {
	long taken, missing;
};

static struct reading last;
static int delays[2];

static void pour(struct tank *t, long litres)
{
	pthread_mutex_lock(&t->lock);
	t->poured += litres; // BUG 1
#ifndef FIXED
	pthread_mutex_unlock(&t->lock);
	usleep(60000);
	pthread_mutex_lock(&t->lock);
#endif
	t->stored += litres; // BUG 3
	pthread_mutex_unlock(&t->lock);
}

static void *control(void *arg)
{
	usleep((useconds_t)delays[0] * 1000);
	pour(arg, 300);
	return NULL;
}

static void *meter(void *arg)
{
	struct tank *t = arg;

	usleep((useconds_t)delays[1] * 1000);
	pthread_mutex_lock(&t->lock);
	last.missing = t->poured - t->stored; // BUG 2
	last.taken++;
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void print(const struct reading *r)
{
	if (r->missing != 0) {
		fprintf(stderr, "%ld litres are missing\n", r->missing);
		abort();
	}
	printf("%ld readings\n", r->taken);
}

int main(int argc, char **argv)
{
	struct tank *tank = calloc(1, sizeof(*tank));
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		delays[i] = argc > i + 1 ? atoi(argv[i + 1]) : 5;
	pthread_mutex_init(&tank->lock, NULL);
	pthread_create(&threads[0], NULL, control, tank);
	pthread_create(&threads[1], NULL, meter, tank);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	print(&last);
	free(tank);
	return 0;
}
