/* The implementation of synchronisation without a tracer: threads that meet. Its
 * functions take the place of libc's in this program. */
#include "agent.h"
#include "engine/sync.h"

static uint32_t dg_tid(void)
{
	return (uint32_t)dg_sys0(SYS_gettid);
}

static __thread uint32_t dg_held; /* of the heap's locks: there is no heap */

#include "wrap/turn.c"
#include "wrap/real.c"
#include "wrap/mutex.c"
#include "wrap/lock.c"
#include "wrap/sync.c"
#include "wrap/c11.c"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool test_start(void);
bool test_thread(uint32_t index);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "failed: %s\n", what);
	_exit(99);
}

#define CHECK(x) check(x, #x)

/* ---- threads that meet ---- */

enum { THREADS = 4, TURNS = 600 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t once[TURNS / 100];
static sem_t sem;
static long locked, nested, written, spun, passed, initialised, turn, last_ones;

static void initialise(void)
{
	initialised++;
}

static void meet(long i)
{
	struct timespec past = { 1, 0 };

	CHECK(!pthread_mutex_lock(&m));
	locked++;
	CHECK(pthread_mutex_trylock(&m) == EBUSY);
	CHECK(!pthread_mutex_unlock(&m));
	CHECK(!pthread_mutex_lock(&recursive) && !pthread_mutex_lock(&recursive));
	nested++;
	CHECK(!pthread_mutex_unlock(&recursive) && !pthread_mutex_unlock(&recursive));
	if (i % 4) {
		CHECK(!pthread_rwlock_rdlock(&rw));
		CHECK(pthread_rwlock_trywrlock(&rw) == EBUSY);
	} else {
		CHECK(!pthread_rwlock_wrlock(&rw));
		written++;
		CHECK(pthread_rwlock_timedrdlock(&rw, &past) == EDEADLK);
	}
	CHECK(!pthread_rwlock_unlock(&rw));
	CHECK(!pthread_spin_lock(&spin));
	spun++;
	CHECK(!pthread_spin_unlock(&spin));
	CHECK(!sem_wait(&sem));
	passed++;
	CHECK(!sem_post(&sem));
	CHECK(!pthread_once(&once[i / 100], initialise));
}

static void *meets(void *arg)
{
	long me = (long)arg;
	int r;

	/* The last one the engine does not know: another way to wait, and no events. */
	if (me < THREADS - 1)
		CHECK(test_thread((uint32_t)me + 2));
	for (long i = 0; i < TURNS; i++)
		meet(i);
	if (me == THREADS - 1)
		return NULL;
	for (long i = 0; i < TURNS / 10; i++) {
		r = pthread_barrier_wait(&barrier);
		CHECK(!r || r == PTHREAD_BARRIER_SERIAL_THREAD);
		last_ones += r != 0;
		pthread_mutex_lock(&m);
		while (turn % (THREADS - 1) != me)
			CHECK(!pthread_cond_wait(&cond, &m));
		turn++;
		CHECK(!pthread_cond_broadcast(&cond));
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static void test_meeting(void)
{
	const struct dg_sync_table *table = DG_SYNC_TABLE;
	pthread_t t[THREADS];

	sem_init(&sem, 0, 1);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&barrier, NULL, THREADS - 1);
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, meets, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(locked == THREADS * TURNS && nested == locked && spun == locked && passed == locked);
	CHECK(written == THREADS * TURNS / 4 && initialised == TURNS / 100);
	CHECK(turn == (THREADS - 1) * TURNS / 10 && last_ones == TURNS / 10);
	/* Nothing is left of the waits. */
	for (uint32_t i = 0; i < DG_WAIT_COUNTS; i++)
		CHECK(!table->waiters[i] && !table->writers[i]);
	CHECK(!((struct dg_mutex *)&m)->lock && !((struct dg_mutex *)&m)->owner && !((struct dg_mutex *)&m)->users);
	CHECK(!((struct dg_rwlock *)&rw)->readers && !((struct dg_rwlock *)&rw)->writer);
	CHECK(((struct dg_sem *)&sem)->value == 1 && !((struct dg_barrier *)&barrier)->in);
	puts("met");
}

int main(void)
{
	CHECK(test_start() && test_thread(1));
	test_meeting();
	return 0;
}
