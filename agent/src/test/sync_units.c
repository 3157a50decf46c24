/* The implementation of synchronisation without a tracer: threads that meet, and
 * a signal at every instruction of a mutex's fast path. Its functions take the
 * place of libc's in this program. */
#include "agent.h"
#include "sync.h"

static uint32_t dg_tid(void)
{
	return (uint32_t)dg_sys0(SYS_gettid);
}

#include "wrap_real.c"
#include "wrap_mutex.c"
#include "wrap_lock.c"
#include "wrap_sync.c"
#include "wrap_c11.c"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

bool test_start(void);
bool test_thread(uint32_t index);
void test_settle(uint64_t *registers);

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

/* ---- a signal at every instruction ---- */

#define TRAP_FLAG 0x100

extern const char dg_wake_high[] DG_HIDDEN;
static long settle_at, steps;

/* A debug exception behind each instruction: like a handler that comes there. */
static void stepped(int signal, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)r[REG_RIP];

	(void)signal, (void)info;
	if (pc >= (uint64_t)pthread_mutex_lock && pc < (uint64_t)dg_wake_high && steps++ == settle_at)
		test_settle((uint64_t *)r);
}

static void step(bool on)
{
	if (on)
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" : : : "memory", "cc");
	else
		__asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" : : : "memory", "cc");
}

/* One pair in one of its ways, with the signal at the n-th of its steps. False: it
 * has fewer. */
static bool one_pair(long n, uint32_t last, uint64_t budget, uint32_t waiters)
{
	static struct dg_mutex mutex;
	uint32_t *count = dg_wait_count(&mutex);
	uint64_t left;

	mutex = (struct dg_mutex){ .last = last };
	dg_me->budget = budget;
	*count = waiters;
	settle_at = n;
	steps = 0;
	step(true);
	pthread_mutex_lock((pthread_mutex_t *)&mutex);
	step(false);
	CHECK(mutex.lock == 1 && mutex.owner == dg_me->tid && mutex.users == 1 && mutex.last == dg_me->index);
	left = dg_me->budget;
	CHECK(last != dg_me->index || !budget || left == budget - 1);
	step(true);
	pthread_mutex_unlock((pthread_mutex_t *)&mutex);
	step(false);
	CHECK(!mutex.lock && !mutex.owner && !mutex.users && *count == waiters);
	*count = 0;
	return steps > n;
}

static void test_steps(void)
{
	struct sigaction a = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
	uint32_t me = dg_me->index;
	long fast, n;

	sigaction(SIGTRAP, &a, NULL);
	for (fast = 0; one_pair(fast, me, 100, 0); fast++)
		;
	CHECK(fast > 30);
	for (n = 0; one_pair(n, me + 1, 100, 0); n++) /* another had it last */
		;
	CHECK(n > 20);
	for (n = 0; one_pair(n, me, 0, 0); n++) /* no budget */
		;
	CHECK(n > 20);
	for (n = 0; one_pair(n, me, 100, 1); n++) /* somebody seems to wait */
		;
	CHECK(n > fast);
	puts("stepped");
}

int main(int argc, char **argv)
{
	CHECK(argc == 2 && test_start() && test_thread(1));
	if (!strcmp(argv[1], "meet"))
		test_meeting();
	else if (!strcmp(argv[1], "step"))
		test_steps();
	return 0;
}
