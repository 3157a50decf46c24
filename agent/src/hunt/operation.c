/* A recording that hunts: where others may come before an operation, and the start. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/sync.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>

/* The rest of dg_wake (wrap/mutex.c), for which a replay does not enter the engine where
 * no thread waits. The thread continues after the call, as from a point: with the registers
 * and flags of that way, and signals come there. How many are to be woken is in r9 still. */
static void dg_hunt_released(struct dg_frame *f)
{
	const uint64_t zero_and_parity = 0x44;
	uint32_t woken = dg_hunt_wake((const void *)f->rsi, (uint32_t)f->r9);

	__atomic_sub_fetch(dg_wait_count((const void *)f->rsi), woken, __ATOMIC_RELAXED);
	f->rdi = f->rsi;
	f->rcx = f->rdx = f->rsi = 0;
	f->rflags = (f->rflags & ~DG_ARITHMETIC_FLAGS) | zero_and_parity;
	f->kind = DG_ENTRY_POINT;
	/* A replay is at a point's pc, and would have to find a signal at the same one. */
	if (dg_hunt_call_point(dg_me, f->rip))
		dg_hunt_of(dg_me)->held = dg_me->pending;
}

/* The pc of the call that returns to site; 0: it is not one of a known address. */
static uint64_t dg_hunt_call_of(uint64_t site)
{
	enum { RELATIVE = 5, THROUGH_TABLE = 6 };
	const uint8_t *behind = (const uint8_t *)site;

	if (!dg_readable(site - THROUGH_TABLE, THROUGH_TABLE))
		return 0;
	if (behind[-RELATIVE] == 0xe8)
		return site - RELATIVE;
	return behind[-THROUGH_TABLE] == 0xff && behind[-THROUGH_TABLE + 1] == 0x15 ? site - THROUGH_TABLE : 0;
}

/* What others do between the look at a condition and the wait for it is the usual way
 * to lose a signal. */
static void dg_hunt_cond_begins(const struct dg_cond_wait *w)
{
	if (w->step == DG_COND_HOLDS && !w->polls)
		dg_hunt_call_point(dg_me, dg_hunt_call_of(w->site));
}

/* Waits on a condition variable or at a barrier give something away as they
 * begin, in a replay before they reach their event. */
static void dg_hunt_before(const struct dg_frame *f)
{
	const struct dg_rthread *t;

	switch (f->rdi) {
	case DG_OP_MUTEX_LOCK:
		if (f->rcx == DG_SYNC_LOCK)
			dg_hunt_arrive_at_mutex((const struct dg_mutex *)f->rsi);
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
		/* A FILE's lock is taken already, which a replay takes after the event: no turn may end in between. */
		if (!dg_by_turns || f->rdx != DG_FAMILY_NONE)
			dg_hunt_arrive(DG_EV_ORDER, f->rsi);
		break;
	case DG_OP_COND_WAIT:
		dg_hunt_cond_begins((const struct dg_cond_wait *)f->rsi);
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

	if (op == DG_OP_REAL)
		dg_place_real = true;
	dg_lockstep_enters();
	dg_hunt_passed(dg_me, false);
	dg_hunt_before(f);
	if (dg_by_turns && op == DG_OP_CREATE_BEGIN)
		dg_turns_pin();
	if (op == DG_OP_RELEASED)
		dg_hunt_released(f);
	else
		dg_call_table[op](f);
	if (dg_hunt_tried_in_vain(op, how, f->rax))
		dg_hunt_vain();
	else if (op < DG_OP_REAL)
		dg_hunt_of(dg_me)->vain = 0;
	dg_hunt_goes_on(dg_me);
	dg_lockstep_leaves();
}

/* ---- the start ---- */

/* What the kernel keeps for a thread and a fork's child does not inherit. */
static void dg_hunt_born(uint64_t robust_list, uint64_t length)
{
	DG_CONTROL->pid = dg_me->tid = dg_me->real_tid = (uint32_t)dg_sys0(SYS_getpid);
	if (robust_list)
		dg_sys2(SYS_set_robust_list, robust_list, length);
}

/* Loading a program and patching its code takes longer than a small one runs. So one
 * process of a hunt stands here, and the runs that leave nothing are forks of it. They
 * are children of its own parent's, as it is; glibc's record of the thread's id, which
 * the kernel knows as well, is made theirs by the fork. */
static void dg_hunt_bear(void)
{
	const uint64_t how = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
	uint64_t robust_list = 0, length = 0;

	if (!DG_HUNT->quiet || !dg_tcb_tid || dg_sys3(SYS_get_robust_list, 0, &robust_list, &length))
		return;
	while (dg_trap(DG_TRAP_READY, 0, 0))
		if (!dg_sys5(SYS_clone, how, 0, 0, dg_tcb(dg_tcb_tid), 0)) {
			dg_hunt_born(robust_list, length);
			return;
		}
}

static void dg_hunt_start(void)
{
	if (DG_CONTROL->mode != DG_MODE_RECORD || DG_CONTROL->hunt != DG_ENGINE_HUNT)
		return;
	dg_hunts = dg_wakes_here = 1;
	dg_by_turns = DG_HUNT->strategy == DG_HUNT_TURNS;
	if (dg_by_turns) {
		dg_turns_start();
		return;
	}
	/* So that each release reaches dg_hunt_released. */
	for (uint32_t i = 0; i < DG_WAIT_COUNTS; i++)
		DG_SYNC_TABLE->waiters[i]++;
	dg_hunt_pin();
	dg_turn_start();
	dg_hunt_bear();
	dg_hunt_seed();
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
	if (dg_by_turns)
		dg_turns_forked();
}
