// A till whose functions take its lock for themselves, of which each source file has one
// defect: a caller of two of them does not get both as one operation.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef SOLD_AS_ONE
#define SOLD_AS_ONE 1
#endif
#ifndef RETURNED_AS_ONE
#define RETURNED_AS_ONE 1
#endif

static pthread_mutex_t till_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t customer_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t printer_lock = PTHREAD_MUTEX_INITIALIZER;
static long cash = 100;

static long get_cash(void)
{
	pthread_mutex_lock(&till_lock);
	long now = cash;
	pthread_mutex_unlock(&till_lock);
	return now;
}

static void set_cash(long now)
{
	pthread_mutex_lock(&till_lock);
	cash = now;
	pthread_mutex_unlock(&till_lock);
}

/* The receipt takes its time. */
static void print(const char *what, long n)
{
	char line[60];
	int length = snprintf(line, sizeof(line), "%s %ld\n", what, n);

	pthread_mutex_lock(&printer_lock);
	write(1, line, (size_t)length);
	pthread_mutex_unlock(&printer_lock);
	usleep(40000);
}

struct deal {
	int at;
	long amount;
};

static void *sale(void *arg)
{
	const struct deal *d = arg;

	usleep((useconds_t)d->at * 1000);
	if (SOLD_AS_ONE)
		pthread_mutex_lock(&customer_lock);
	long now = get_cash();

	print("sold", d->amount);
	set_cash(now + d->amount);
	if (SOLD_AS_ONE)
		pthread_mutex_unlock(&customer_lock);
	return NULL;
}

static void *refund(void *arg)
{
	const struct deal *d = arg;

	usleep((useconds_t)d->at * 1000);
	if (RETURNED_AS_ONE)
		pthread_mutex_lock(&customer_lock);
	long now = get_cash();

	print("returned", d->amount);
	set_cash(now - d->amount);
	if (RETURNED_AS_ONE)
		pthread_mutex_unlock(&customer_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	int sells = argc > 1 && argv[1][0] == 's';
	struct deal deals[] = { { argc > 2 ? atoi(argv[2]) : 5, 7 }, { argc > 3 ? atoi(argv[3]) : 130, 7 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, sells ? sale : refund, &deals[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (cash != (sells ? 114 : 86)) {
		fprintf(stderr, "%ld in the till\n", cash);
		abort();
	}
	return 0;
}
