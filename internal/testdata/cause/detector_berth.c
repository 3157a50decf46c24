// A harbour gives its berths out by a number that is counted up without a lock: two
// ships get the same one. The exchange by which they moor finds that out, and has no
// part in it.
// CAUSE kind=atomicity-violation variable=harbour.next pattern=RWW|RWR
// FAILS signal=SIGABRT says="is taken"
// RUNS fail: 5 20
// RUNS fail: 20 5
// RUNS pass: 5 130
// RUNS pass: 130 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BERTHS = 6 };

static struct {
	int next, moored;
} harbour;

static struct {
	int taken;
	int ship;
} berths[BERTHS];

static pthread_mutex_t office = PTHREAD_MUTEX_INITIALIZER;

struct ship {
	int number, arrives;
};

/* The radio is slow. */
static void announce(int ship, int berth)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "ship %d to berth %d\n", ship, berth);

	write(1, line, (size_t)n);
	usleep(50000);
}

static int assign(int ship)
{
	int berth;

#ifdef FIXED
	pthread_mutex_lock(&office);
#endif
	berth = harbour.next; // BUG 1
	announce(ship, berth);
	harbour.next = berth + 1; // BUG 2 3
#ifdef FIXED
	pthread_mutex_unlock(&office);
#endif
	return berth;
}

__attribute__((noinline)) static void moor(int berth, int ship)
{
	if (__atomic_exchange_n(&berths[berth].taken, 1, __ATOMIC_ACQ_REL)) {
		fprintf(stderr, "berth %d is taken\n", berth);
		abort();
	}
	berths[berth].ship = ship;
}

static void *sail(void *arg)
{
	const struct ship *s = arg;

	usleep((useconds_t)s->arrives * 1000);
	moor(assign(s->number), s->number);
	__atomic_add_fetch(&harbour.moored, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ship ships[] = { { 7, argc > 1 ? atoi(argv[1]) : 5 }, { 8, argc > 2 ? atoi(argv[2]) : 130 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, sail, &ships[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d moored\n", harbour.moored);
	return 0;
}
