/* A recording that hunts: where others may come before an operation, and the start. */
#include "engine.h"
#include "engine_hunt.h"
#include "sync.h"
#include "syscall.h"
#include "thread.h"

#include <errno.h>

/* As dg_op_released. How many are to be woken is in r9 still: wrap_mutex.c. */
static void dg_hunt_released(struct dg_frame *f)
{
	uint32_t woken = dg_hunt_wake((const void *)f->rsi, (uint32_t)f->r9);

	__atomic_sub_fetch(dg_wait_count((const void *)f->rsi), woken, __ATOMIC_RELAXED);
	f->rdi = f->rsi;
	f->rip = (uint64_t)dg_wake_took;
	f->rsp -= sizeof(uint64_t);
}

/* Waits on a condition variable or at a barrier give something away as they
 * begin, in a replay before they come to their event. */
static void dg_hunt_before(const struct dg_frame *f)
{
	const struct dg_rthread *t;

	switch (f->rdi) {
	case DG_OP_MUTEX_LOCK:
		if (f->rcx == DG_SYNC_LOCK)
			dg_hunt_arrive_at(DG_EV_MUTEX, (const void *)f->rsi, &((const struct dg_mutex *)f->rsi)->lock, 1);
		else
			dg_hunt_arrive(DG_EV_MUTEX, f->rsi);
		break;
	case DG_OP_SEM:
		if (f->rcx == DG_SYNC_WAIT)
			dg_hunt_arrive_at(DG_EV_SEM, (const void *)f->rsi, &((const struct dg_sem *)f->rsi)->value, 0);
		else
			dg_hunt_arrive(DG_EV_SEM, f->rsi);
		break;
	case DG_OP_RWLOCK:
		dg_hunt_arrive(DG_EV_RWLOCK, f->rsi);
		break;
	case DG_OP_SPIN:
		dg_hunt_arrive(DG_EV_SPIN, f->rsi);
		break;
	case DG_OP_ONCE:
		dg_hunt_arrive(DG_EV_ONCE, f->rsi);
		break;
	case DG_OP_GUARD:
		dg_hunt_arrive(DG_EV_GUARD, f->rsi);
		break;
	case DG_OP_ORDER_BEGIN:
		dg_hunt_arrive(DG_EV_ORDER, f->rsi);
		break;
	case DG_OP_JOIN_BEGIN:
	case DG_OP_CANCEL:
		t = dg_thread_of(f->rsi);
		if (t)
			dg_hunt_arrive(f->rdi == DG_OP_CANCEL ? DG_EV_CANCEL : DG_EV_JOIN, t->index);
		break;
	}
}

static bool dg_hunt_tried_in_vain(uint64_t op, uint64_t how, uint64_t result)
{
	if (op != DG_OP_MUTEX_LOCK && op != DG_OP_RWLOCK && op != DG_OP_SPIN && op != DG_OP_SEM && op != DG_OP_JOIN_BEGIN)
		return false;
	return result == EBUSY || result == EAGAIN || (op == DG_OP_SEM && how == DG_SYNC_GET);
}

static dg_operation *const dg_call_table[DG_OPS];

static void dg_hunt_operation(struct dg_frame *f)
{
	uint64_t op = f->rdi, how = f->rcx;

	dg_hunt_passed(dg_me, false);
	dg_hunt_before(f);
	if (op == DG_OP_RELEASED)
		dg_hunt_released(f);
	else
		dg_call_table[op](f);
	if (dg_hunt_tried_in_vain(op, how, f->rax))
		dg_hunt_vain();
	else if (op < DG_OP_REAL)
		dg_hunt_of(dg_me)->vain = 0;
	dg_hunt_goes_on(dg_me);
}

/* ---- the start ---- */

static void dg_hunt_start(void)
{
	if (DG_CONTROL->mode != DG_MODE_RECORD || DG_CONTROL->hunt != DG_ENGINE_HUNT)
		return;
	dg_hunts = dg_wakes_here = 1;
	dg_hunt_seed();
	dg_hunt_pin();
	dg_turn_start();
}

static void dg_hunt_forked(void)
{
	if (!dg_hunting())
		return;
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		dg_hunt_threads[i] = (struct dg_hunt_thread){ .ranked = false };
	dg_hunt_waiting_outside = 0;
	DG_HUNT->made = DG_HUNT->missing = 0;
	DG_CONTROL->holder = dg_me->index;
	dg_hunt_seed();
}
