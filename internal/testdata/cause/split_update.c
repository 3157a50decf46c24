// A shop's stock, read and written under its lock, by functions that take it for
// themselves: what another sale did in between is undone.
// CAUSE kind=atomicity-violation variable=stock pattern=RWW
// FAILS signal=SIGABRT says="in stock"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 130
// RUNS pass: 130 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sale_lock = PTHREAD_MUTEX_INITIALIZER;
static int stock = 10;
static int sold;

struct sale {
	int at, pieces;
};

static int get_stock(void)
{
	int pieces;

	pthread_mutex_lock(&stock_lock);
	pieces = stock; // BUG 1
	pthread_mutex_unlock(&stock_lock);
	return pieces;
}

static void set_stock(int pieces)
{
	pthread_mutex_lock(&stock_lock);
	stock = pieces; // BUG 2 3
	pthread_mutex_unlock(&stock_lock);
}

/* The card is charged by the bank. */
static int charge(int pieces)
{
	char line[40];
	int n = snprintf(line, sizeof(line), "charge %d\n", pieces);

	write(1, line, (size_t)n);
	usleep(40000);
	return 1;
}

static void *sell(void *arg)
{
	const struct sale *s = arg;
	int left;

	usleep((useconds_t)s->at * 1000);
#ifdef FIXED
	pthread_mutex_lock(&sale_lock);
#endif
	left = get_stock();
	if (left >= s->pieces && charge(s->pieces)) {
		set_stock(left - s->pieces);
		__atomic_add_fetch(&sold, s->pieces, __ATOMIC_RELAXED);
	}
#ifdef FIXED
	pthread_mutex_unlock(&sale_lock);
#endif
	return NULL;
}

int main(int argc, char **argv)
{
	struct sale sales[] = { { argc > 1 ? atoi(argv[1]) : 5, 6 }, { argc > 2 ? atoi(argv[2]) : 130, 3 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, sell, &sales[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (stock + sold != 10) {
		fprintf(stderr, "%d sold and %d in stock\n", sold, stock);
		abort();
	}
	return 0;
}
