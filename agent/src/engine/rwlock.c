/* Locks of readers and writers. */
#include "engine/engine.h"
#include "engine/free.h"
#include "engine/sync.h"

static bool dg_rw_reads(uint64_t how)
{
	return how == DG_SYNC_READ || how == DG_SYNC_TRY_READ || how == DG_SYNC_TIMED_READ;
}

static bool dg_rw_tries(uint64_t how)
{
	return how == DG_SYNC_TRY || how == DG_SYNC_TRY_READ;
}

/* How long a reader lets writers have the lock first, where the lock prefers them. It must
 * not wait for ever: the count is of all locks with the same slot, and a thread
 * that reads may ask to read once more. */
#define DG_RW_PATIENCE 20
#define DG_RW_PATIENCE_NS 100000

static bool dg_rw_let_writers(const struct dg_rwlock *l)
{
	const uint32_t *writers = &DG_SYNC_TABLE->writers[dg_wait_slot(l)];
	struct timespec t = { .tv_nsec = DG_RW_PATIENCE_NS };
	uint64_t args[6] = { (uint64_t)&t };

	for (int i = 0; !dg_hunting() && i < DG_RW_PATIENCE && __atomic_load_n(writers, __ATOMIC_RELAXED); i++) {
		if (dg_blocking(SYS_nanosleep, args, &dg_me->pending) && dg_interrupted())
			return false;
	}
	return true;
}

static int dg_rw_acquire_write(struct dg_rwlock *l, const struct dg_until *until)
{
	uint32_t *writers = &DG_SYNC_TABLE->writers[dg_wait_slot(l)];
	int result;

	__atomic_add_fetch(writers, 1, __ATOMIC_RELAXED);
	result = dg_acquire(dg_rw_write_attempt, l, dg_me->tid, until);
	__atomic_sub_fetch(writers, 1, __ATOMIC_RELAXED);
	return result;
}

static int dg_rw_acquire(struct dg_rwlock *l, uint64_t how, const struct dg_until *until)
{
	const uint32_t *word;
	uint32_t value;
	int result;

	if (dg_rw_tries(how)) {
		result = (dg_rw_reads(how) ? dg_rw_read_attempt : dg_rw_write_attempt)(l, dg_me->tid, &word, &value);
		return result == DG_MUST_WAIT || result == EDEADLK ? EBUSY : result;
	}
	dg_sync_waits(__atomic_load_n(&l->readers, __ATOMIC_RELAXED) & (dg_rw_reads(how) ? DG_RW_WRITER : UINT32_MAX));
	if (!dg_rw_reads(how))
		return dg_rw_acquire_write(l, until);
	if (l->kind == DG_RW_PREFERS_WRITER && l->writer != dg_me->tid && !dg_rw_let_writers(l))
		return EINTR;
	return dg_acquire(dg_rw_read_attempt, l, dg_me->tid, until);
}

/* Arguments: the lock, the site, enum dg_sync, struct dg_until or NULL. */
static void dg_op_rwlock(struct dg_frame *f)
{
	struct dg_rwlock *l = (struct dg_rwlock *)f->rsi;
	const struct dg_event *e;
	const uint32_t *word;
	uint32_t value;
	int result;

	if (dg_sync_recording()) {
		result = dg_rw_acquire(l, f->rcx, (const struct dg_until *)f->r8);
		dg_sync_wrote(f, DG_EV_RWLOCK, l, f->rdx, f->rcx, result);
		return;
	}
	if (dg_sync_await(DG_EV_RWLOCK, l))
		while (l->readers & (dg_rw_reads(f->rcx) ? DG_RW_WRITER : UINT32_MAX) && dg_turn_catch_up(dg_turn_thread(l->writer)))
			;
	e = dg_sync_did(f, DG_EV_RWLOCK, l, f->rdx, f->rcx);
	dg_free_expect(!e || !dg_rw_tries(f->rcx) || !e->result || l->readers, e);
	if (!e || e->result)
		return;
	result = (dg_rw_reads(f->rcx) ? dg_rw_read_attempt : dg_rw_write_attempt)(l, dg_me->tid, &word, &value);
	dg_sync_expect(!result, e, 0, l->readers);
}
