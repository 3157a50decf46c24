// ENDS: SIGABRT
// EVENTS: cond 100
// EVENTS: once 1
#include "check.h"
#include <threads.h>
#include <time.h>

enum { THREADS = 3, TURNS = 1000 };

static mtx_t plain, recursive, timed;
static cnd_t turned;
static once_flag flag = ONCE_FLAG_INIT;
static int turn, calls;

static void initialise(void)
{
	calls++;
}

static int work(void *arg)
{
	int me = (int)(long)arg;

	call_once(&flag, initialise);
	for (int i = 0; i < TURNS; i++) {
		CHECK(mtx_lock(&recursive) == thrd_success && mtx_trylock(&recursive) == thrd_success);
		CHECK(mtx_unlock(&recursive) == thrd_success && mtx_unlock(&recursive) == thrd_success);
		CHECK(mtx_lock(&plain) == thrd_success);
		while (turn % THREADS != me)
			CHECK(cnd_wait(&turned, &plain) == thrd_success);
		turn++;
		came((uint64_t)me);
		CHECK(cnd_broadcast(&turned) == thrd_success);
		CHECK(mtx_unlock(&plain) == thrd_success);
	}
	return me;
}

int main(void)
{
	struct timespec past = { 1, 0 };
	thrd_t t[THREADS];
	int result;

	mtx_init(&plain, mtx_plain);
	mtx_init(&recursive, mtx_plain | mtx_recursive);
	mtx_init(&timed, mtx_timed);
	cnd_init(&turned);
	for (long i = 0; i < THREADS; i++)
		thrd_create(&t[i], work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		thrd_join(t[i], &result);
		CHECK(result == i);
	}
	CHECK(mtx_lock(&timed) == thrd_success && mtx_trylock(&timed) == thrd_busy);
	CHECK(mtx_timedlock(&timed, &past) == thrd_timedout);
	CHECK(cnd_timedwait(&turned, &timed, &past) == thrd_timedout);
	CHECK(turn == THREADS * TURNS && calls == 1);
	cnd_destroy(&turned);
	finish("c11");
}
