// A cache of names. Who misses one gives the lock for reading back to take that
// for writing, and does not look again: the name is in twice.
// CAUSE kind=atomicity-violation variable=cache.used pattern=RWR|RWW
// FAILS signal=SIGABRT says="is there twice"
// RUNS fail: 5 25
// RUNS fail: 25 5
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES = 8 };

static struct {
	pthread_rwlock_t lock;
	int used;
	char names[NAMES][16];
} cache = { .lock = PTHREAD_RWLOCK_INITIALIZER };

struct query {
	const char *name;
	int at, number;
};

static int find(const char *name)
{
	for (int i = 0; i < cache.used; i++) // BUG 1
		if (!strcmp(cache.names[i], name))
			return i;
	return -1;
}

static void resolve(const char *name)
{
	char line[40];
	int n = snprintf(line, sizeof(line), "who is %s?\n", name);

	write(1, line, (size_t)n);
	usleep(50000);
}

static int lookup(const char *name)
{
	int number;

	pthread_rwlock_rdlock(&cache.lock);
	number = find(name);
	pthread_rwlock_unlock(&cache.lock);
	if (number >= 0)
		return number;
	resolve(name);
	pthread_rwlock_wrlock(&cache.lock);
#ifdef FIXED
	number = find(name);
	if (number < 0)
#endif
	{
		number = cache.used; // BUG 3
		strcpy(cache.names[number], name);
		cache.used = number + 1; // BUG 2
	}
	pthread_rwlock_unlock(&cache.lock);
	return number;
}

static void *ask(void *arg)
{
	struct query *q = arg;

	usleep((useconds_t)q->at * 1000);
	q->number = lookup(q->name);
	return NULL;
}

static void check_names(void)
{
	for (int i = 0; i < cache.used; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(cache.names[i], cache.names[k])) {
				fprintf(stderr, "%s is there twice\n", cache.names[i]);
				abort();
			}
}

int main(int argc, char **argv)
{
	struct query queries[] = { { "example.org", argc > 1 ? atoi(argv[1]) : 5, 0 }, { "example.org", argc > 2 ? atoi(argv[2]) : 150, 0 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, ask, &queries[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check_names();
	return queries[0].number != queries[1].number;
}
