// A cache whose values can be counted up, after memcached's bug 127: the lock of
// an item is held while it is found, and not while its value is changed.
// CAUSE kind=atomicity-violation variable=table[0].number pattern=RWW
// FAILS signal=SIGABRT says="instead of 30"
// RUNS fail: 10 14
// RUNS fail: 14 10
// RUNS pass: 10 110
// RUNS pass: 110 10
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 8 };

/* A cache line each, the key in a half of its own. */
struct item {
	long number;
	unsigned long stored, expires, flags;
	char key[24];
	unsigned changes;
} __attribute__((aligned(64)));

static struct item table[BUCKETS];
static pthread_mutex_t locks[BUCKETS];
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

struct command {
	const char *key;
	long delta;
	int arrives;
};

static unsigned bucket_of(const char *key)
{
	unsigned h = 0;

	while (*key)
		h = h * 31 + (unsigned char)*key++;
	return h % BUCKETS;
}

static struct item *item_get(const char *key)
{
	unsigned b = bucket_of(key);
	struct item *it = NULL;

	pthread_mutex_lock(&locks[b]);
	if (!strcmp(table[b].key, key))
		it = &table[b];
	pthread_mutex_unlock(&locks[b]);
	return it;
}

/* Changes go to the other node first. */
static void replicate(const struct item *it, long number)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "set %s %ld\n", it->key, number);

	pthread_mutex_lock(&journal_lock);
	write(1, line, (size_t)n);
	pthread_mutex_unlock(&journal_lock);
	usleep(40000);
}

static void add_delta(struct item *it, long delta)
{
	long number;

#ifdef FIXED
	pthread_mutex_lock(&locks[bucket_of(it->key)]);
#endif
	number = it->number + delta; // BUG 1
	replicate(it, number);
	it->number = number; // BUG 2 3
#ifdef FIXED
	pthread_mutex_unlock(&locks[bucket_of(it->key)]);
#endif
	__atomic_add_fetch(&it->changes, 1, __ATOMIC_RELAXED);
}

static void *connection(void *arg)
{
	const struct command *c = arg;
	struct item *it;

	usleep((useconds_t)c->arrives * 1000);
	it = item_get(c->key);
	if (it)
		add_delta(it, c->delta);
	return NULL;
}

int main(int argc, char **argv)
{
	struct command commands[] = { { "visits", 10, argc > 1 ? atoi(argv[1]) : 10 }, { "visits", 20, argc > 2 ? atoi(argv[2]) : 110 } };
	struct item *visits = &table[bucket_of("visits")];
	pthread_t threads[2];

	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&locks[i], NULL);
	strcpy(visits->key, "visits");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, connection, &commands[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (visits->number != 30) {
		fprintf(stderr, "%ld instead of 30\n", visits->number);
		abort();
	}
	return 0;
}
