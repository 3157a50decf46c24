/* Semaphores and barriers. */
#include "engine/engine.h"
#include "engine/free.h"
#include "engine/sync.h"

static int dg_sem_acquire(struct dg_sem *s, uint64_t how, const struct dg_until *until)
{
	const uint32_t *word;
	uint32_t value;

	dg_sync_waits(how != DG_SYNC_TRY && !__atomic_load_n(&s->value, __ATOMIC_RELAXED));
	if (how != DG_SYNC_TRY)
		return dg_acquire(dg_sem_attempt, s, dg_me->tid, until);
	return dg_sem_attempt(s, dg_me->tid, &word, &value) ? EAGAIN : 0;
}

static void dg_sem_value(struct dg_frame *f, const struct dg_sem *s)
{
	if (dg_sync_recording()) {
		f->rax = __atomic_load_n(&s->value, __ATOMIC_RELAXED);
		dg_sync_write(DG_EV_SEM, s, f->rdx, DG_SYNC_GET, (int64_t)f->rax, 0);
	} else {
		f->rax = (uint64_t)dg_sync_read(DG_EV_SEM, s, f->rdx, DG_SYNC_GET)->result;
	}
}

/* Arguments: the semaphore, the site, enum dg_sync, struct dg_until or NULL. A
 * handler ends the wait where the kernel would end it (EINTR). */
static void dg_op_sem(struct dg_frame *f)
{
	struct dg_sem *s = (struct dg_sem *)f->rsi;
	const struct dg_event *e;
	const uint32_t *word;
	uint32_t value;
	int result;

	if (f->rcx == DG_SYNC_GET) {
		dg_sem_value(f, s);
	} else if (dg_sync_recording()) {
		result = dg_sem_acquire(s, f->rcx, (const struct dg_until *)f->r8);
		if (result == EINTR) {
			dg_sync_write(DG_EV_SEM, s, f->rdx, f->rcx, EINTR, 0);
			f->rax = EINTR;
			return;
		}
		dg_sync_wrote(f, DG_EV_SEM, s, f->rdx, f->rcx, result);
	} else {
		if (dg_sync_await(DG_EV_SEM, s))
			while (!s->value && dg_turn_catch_up(0))
				;
		e = dg_sync_did(f, DG_EV_SEM, s, f->rdx, f->rcx);
		dg_free_expect(!e || f->rcx != DG_SYNC_TRY || !e->result || !s->value, e);
		if (e && !e->result)
			dg_sync_expect(!dg_sem_attempt(s, dg_me->tid, &word, &value), e, 1, 0);
	}
}

struct __attribute__((aligned(8))) dg_barrier_state {
	uint32_t in, round;
};

static uint32_t dg_barrier_next(uint32_t round)
{
	return round + 1 ? round + 1 : 1;
}

/* Whether this thread is the last of its round. Then no thread enters the next
 * before dg_barrier_open. */
static bool dg_barrier_arrive(struct dg_barrier_wait *w)
{
	struct dg_barrier *b = w->barrier;
	struct dg_barrier_state seen, next;

	dg_sync_waits(true);
	__atomic_load((struct dg_barrier_state *)b, &seen, __ATOMIC_RELAXED);
	for (;;) {
		if (seen.in == b->count) {
			__builtin_ia32_pause();
			__atomic_load((struct dg_barrier_state *)b, &seen, __ATOMIC_RELAXED);
			continue;
		}
		next = (struct dg_barrier_state){ seen.in + 1, seen.round ? seen.round : 1 };
		if (__atomic_compare_exchange((struct dg_barrier_state *)b, &seen, &next, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED))
			break;
	}
	w->arrived = 1;
	w->round = next.round;
	return next.in == b->count;
}

static void dg_barrier_open(struct dg_barrier_wait *w)
{
	struct dg_barrier_state next = { 0, dg_barrier_next(w->round) };

	__atomic_store((struct dg_barrier_state *)w->barrier, &next, __ATOMIC_SEQ_CST);
	dg_wake_word(&w->barrier->round, INT_MAX);
}

static int dg_barrier_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_barrier_wait *w = variable;

	(void)tid;
	*word = &w->barrier->round;
	*value = w->round;
	return __atomic_load_n(&w->barrier->round, __ATOMIC_ACQUIRE) == w->round ? DG_MUST_WAIT : DG_TAKEN;
}

static void dg_barrier_replay(struct dg_frame *f, struct dg_barrier_wait *w)
{
	struct dg_barrier *b = w->barrier;
	const struct dg_event *e;

	if (!w->arrived) {
		b->in++;
		w->round = b->round = b->round ? b->round : 1;
		w->arrived = 1;
	}
	if (dg_event_await(DG_EV_BARRIER, (uint64_t)b)->result)
		while (b->in < b->count && dg_turn_catch_up(dg_turn_comes_to(DG_EV_BARRIER, (uint64_t)b)))
			;
	e = dg_sync_did(f, DG_EV_BARRIER, b, w->site, DG_SYNC_WAIT);
	if (!e)
		return;
	dg_free_expect(e->result || b->round != w->round, e);
	if (!e->result)
		return;
	/* More may have arrived than there were: those of the next round. */
	dg_sync_expect(b->in >= b->count, e, b->count, b->in);
	b->in -= b->count;
	b->round = dg_barrier_next(b->round);
}

/* PTHREAD_BARRIER_SERIAL_THREAD */
#define DG_BARRIER_LAST (-1)

/* Argument: struct dg_barrier_wait. The event of the last of a round has a lower
 * ticket than those of the others, which have theirs when they leave. */
static void dg_op_barrier(struct dg_frame *f)
{
	struct dg_barrier_wait *w = (struct dg_barrier_wait *)f->rsi;

	if (!dg_sync_recording()) {
		dg_barrier_replay(f, w);
	} else if (!w->arrived && dg_barrier_arrive(w)) {
		dg_sync_wrote(f, DG_EV_BARRIER, w->barrier, w->site, DG_SYNC_WAIT, DG_BARRIER_LAST);
		dg_barrier_open(w);
	} else {
		dg_sync_wrote(f, DG_EV_BARRIER, w->barrier, w->site, DG_SYNC_WAIT,
			      dg_acquire(dg_barrier_attempt, w, dg_me->tid, NULL));
	}
}
