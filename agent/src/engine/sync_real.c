/* Synchronisation that libc or the kernel does: the operations that only write down, or
 * take from the log, what it did. */
#include "engine/engine.h"
#include "engine/sync.h"

static void dg_real_write(enum dg_kind kind, const void *object, uint64_t site, int64_t result, uint32_t bytes)
{
	struct dg_event *e;

	if (dg_mode != DG_MODE_RECORD)
		return;
	e = dg_event_begin(kind, (uint64_t)object, site, 1, bytes ? sizeof(struct dg_payload) + bytes : 0);
	if (!e)
		return;
	dg_event_args(e)[0] = DG_SYNC_REAL;
	e->result = result;
	if (bytes)
		dg_event_payload(e, DG_PAYLOAD_OUT, (uint64_t)object, object, bytes);
	dg_event_commit(e);
}

static void dg_mutex_real_await(const struct dg_mutex *m)
{
	if (dg_sync_await(DG_EV_MUTEX, m) && m->owner != dg_me->tid)
		while (m->lock && dg_turn_catch_up(dg_turn_thread(m->owner)))
			;
}

/* Arguments: the kind, the object, the site, the real function's result, and how
 * many bytes of the object a replay is to have as they are now, as it does not
 * call the real function. */
static void dg_op_real(struct dg_frame *f)
{
	enum dg_kind kind = (enum dg_kind)f->rsi;
	const void *object = (const void *)f->rdx;
	const struct dg_event *e;

	if (dg_sync_recording()) {
		dg_real_write(kind, object, f->rcx, (int64_t)f->r8, (uint32_t)f->r9);
		f->rax = f->r8;
		return;
	}
	if (kind == DG_EV_MUTEX)
		dg_mutex_real_await(object);
	e = dg_sync_read(kind, object, f->rcx, DG_SYNC_REAL);
	dg_payload_write(e);
	f->rax = (uint64_t)e->result;
}

/* For dg_call_table. */
#define DG_SYNC_OPERATIONS                                                                                             \
	[DG_OP_MUTEX_LOCK] = dg_op_mutex_lock, [DG_OP_RWLOCK] = dg_op_rwlock, [DG_OP_SPIN] = dg_op_spin,               \
	[DG_OP_COND_WAIT] = dg_op_cond_wait, [DG_OP_SEM] = dg_op_sem, [DG_OP_BARRIER] = dg_op_barrier,                 \
	[DG_OP_ONCE] = dg_op_once, [DG_OP_GUARD] = dg_op_guard, [DG_OP_REAL] = dg_op_real
