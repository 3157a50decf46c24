// A store whose index and journal have a lock each. Writers take the index's
// first, the compaction takes the journal's first.
// CAUSE kind=deadlock variable=index_lock,journal_lock pattern="lock order"
// FAILS signal=SIGABRT says="no progress"
// RUNS fail: 5 15
// RUNS pass: 5 130
// RUNS pass: 130 5
// COMPILERS: gcc clang
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static int entries[16], used, length;
static int finished;

static void sync_disk(void)
{
	write(1, "sync\n", 5);
	usleep(40000);
}

static void append(int value)
{
	pthread_mutex_lock(&journal_lock); // BUG 1
	length += value;
	pthread_mutex_unlock(&journal_lock);
}

static void put(int value)
{
	pthread_mutex_lock(&index_lock);
	entries[used++] = value;
	sync_disk();
	append(value);
	pthread_mutex_unlock(&index_lock);
}

static void compact(void)
{
#ifdef FIXED
	pthread_mutex_lock(&index_lock);
	pthread_mutex_lock(&journal_lock);
#else
	pthread_mutex_lock(&journal_lock);
	sync_disk();
	pthread_mutex_lock(&index_lock); // BUG 2
#endif
	length = 0;
	for (int i = 0; i < used; i++)
		length += entries[i];
	pthread_mutex_unlock(&index_lock);
	pthread_mutex_unlock(&journal_lock);
}

static void *writer(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	put(3);
	__atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *compactor(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	compact();
	__atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

int main(int argc, char **argv)
{
	int writes = argc > 1 ? atoi(argv[1]) : 5, compacts = argc > 2 ? atoi(argv[2]) : 130;
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, writer, &writes);
	pthread_create(&threads[1], NULL, compactor, &compacts);
	usleep(600000);
	if (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) != 2) {
		fprintf(stderr, "no progress\n");
		abort();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return length != 3;
}
