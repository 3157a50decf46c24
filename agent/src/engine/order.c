/* Events of what the engine does not do itself: calls that libc serialises, the
 * heap's locks, and calls that bring in a value without asking the kernel. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "syscall.h"
#include "engine/thread.h"

#include <linux/futex.h>
#include <time.h>

/* ---- DG_OP_ORDER_BEGIN: object, family, how, site. DG_OP_ORDER_END: family, how ---- */

/* Its holder may be in a call that waits for this thread: then libc's own lock
 * has to do, and the log says so. */
static void dg_op_order_begin(struct dg_frame *f)
{
	struct dg_gate *gate = &dg_families[f->rdx % DG_FAMILIES];
	const struct dg_event *logged;
	bool taken = false;

	if (dg_recording()) {
		taken = f->rdx && dg_gate_take(gate, false);
		dg_event_plain(DG_EV_ORDER, f->rsi, f->r8, taken, NULL, 0);
	} else {
		logged = dg_event_await(DG_EV_ORDER, f->rsi);
		if (f->rdx && logged->result)
			dg_gate_await(gate);
		dg_event_take(logged, DG_EV_ORDER, f->rsi, f->r8, NULL, 0);
		taken = f->rdx && logged->result;
		if (taken)
			dg_gate_retake(gate, logged);
	}
	if (taken && f->rcx == DG_ORDER_GATE) {
		if (dg_fact(dg_me)->gates >> f->rdx & 1)
			dg_gate_open(gate);
		dg_fact(dg_me)->gates |= 1u << f->rdx;
	}
	f->rax = taken;
}

static void dg_op_order_end(struct dg_frame *f)
{
	uint32_t family = f->rsi % DG_FAMILIES, *gates = &dg_fact(dg_me)->gates;

	if (f->rdx == DG_ORDER_GATE) {
		if (!(*gates >> family & 1))
			return; /* a system call has opened it */
		*gates &= ~(1u << family);
	}
	dg_gate_open(&dg_families[family]);
}

/* ---- DG_OP_ORDER_WAIT, DG_OP_ORDER_WAKE: a lock of libc's that is taken ---- */

/* libc itself releases such locks as well, unseen. */
#define DG_ORDER_PATIENCE 2000000l /* ns */

uint32_t dg_order_waiters;
static uint32_t dg_order_given;

static void dg_op_order_wait(struct dg_frame *f)
{
	struct timespec some = { 0, DG_ORDER_PATIENCE };
	uint32_t seen = __atomic_load_n(&dg_order_given, __ATOMIC_ACQUIRE);

	if (!dg_recording()) {
		dg_turn_yield(DG_EV_ORDER, f->rsi);
		return;
	}
	__atomic_fetch_add(&dg_order_waiters, 1, __ATOMIC_SEQ_CST);
	if (dg_hunting())
		dg_hunt_pause(&dg_order_given, DG_ORDER_PATIENCE);
	else
		dg_sys4(SYS_futex, &dg_order_given, FUTEX_WAIT_PRIVATE, seen, &some);
	__atomic_fetch_sub(&dg_order_waiters, 1, __ATOMIC_RELAXED);
}

static void dg_op_order_wake(struct dg_frame *f)
{
	(void)f;
	__atomic_fetch_add(&dg_order_given, 1, __ATOMIC_RELEASE);
	dg_sys3(SYS_futex, &dg_order_given, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* ---- DG_OP_HEAP: word, tid, level, whether it may wait ---- */

#define DG_HEAP_WAITERS 0x80000000u /* lock.c */
#define DG_HEAP_NOBODY 0x7fffffffu
#define DG_HEAP_SPINS 64

/* A holder that never gives it back to this thread: itself, or one that a fork
 * left. The same in a replay, so that it needs no event. */
static bool dg_heap_hopeless(const uint32_t *word, uint32_t tid)
{
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	return (seen & ~DG_HEAP_WAITERS) == tid || seen == DG_HEAP_NOBODY;
}

static bool dg_heap_spin(uint32_t *word, uint32_t tid)
{
	uint32_t free;

	for (int i = 0; i < DG_HEAP_SPINS; i++) {
		free = 0;
		if (!__atomic_load_n(word, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(word, &free, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/* As dg_lock_wait in lock.c. */
static void dg_heap_wait(uint32_t *word, uint32_t tid)
{
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		if (!seen) {
			if (__atomic_compare_exchange_n(word, &seen, tid | DG_HEAP_WAITERS, false, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				return;
			continue;
		}
		if (!(seen & DG_HEAP_WAITERS) &&
		    !__atomic_compare_exchange_n(word, &seen, seen | DG_HEAP_WAITERS, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		if (dg_hunting())
			dg_hunt_pause(word, DG_ORDER_PATIENCE);
		else
			dg_sys4(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen | DG_HEAP_WAITERS, 0);
	}
}

static bool dg_heap_recorded(uint32_t *word, uint32_t tid, uint64_t level, bool may_wait)
{
	bool taken = dg_heap_spin(word, tid);

	if (!taken && may_wait) {
		dg_heap_wait(word, tid);
		taken = true;
	}
	dg_event_plain(DG_EV_HEAP, level, 0, taken, NULL, 0);
	return taken;
}

static bool dg_heap_replayed(uint32_t *word, uint32_t tid, uint64_t level)
{
	const struct dg_event *logged = dg_event_await(DG_EV_HEAP, level);

	while (logged->result && *word && dg_turn_catch_up(dg_turn_thread(*word & ~DG_HEAP_WAITERS)))
		;
	dg_event_take(logged, DG_EV_HEAP, level, 0, NULL, 0);
	if (!logged->result)
		return false;
	if (*word)
		dg_diverge(DG_DIFFERS_STATE, logged, 0, tid, *word);
	*word = tid;
	return true;
}

static void dg_op_heap(struct dg_frame *f)
{
	uint32_t *word = (uint32_t *)f->rsi, tid = (uint32_t)f->rdx;

	dg_thread_start();
	if (dg_heap_hopeless(word, tid))
		f->rax = false;
	else if (dg_recording())
		f->rax = dg_heap_recorded(word, tid, f->rcx, f->r8);
	else
		f->rax = dg_heap_replayed(word, tid, f->rcx);
}

/* ---- DG_OP_YIELD: level of a lock that no event orders ---- */

static void dg_op_yield(struct dg_frame *f)
{
	if (!dg_recording())
		dg_turn_yield(DG_EV_HEAP, f->rsi);
}

/* ---- DG_OP_VALUE: address, bytes, result, site; the result is the logged one ---- */

static void dg_op_value(struct dg_frame *f)
{
	const struct dg_event *logged;
	struct dg_event *e;

	if (!dg_recording()) {
		logged = dg_event_await(DG_EV_VALUE, f->rsi);
		dg_event_take(logged, DG_EV_VALUE, f->rsi, f->r8, NULL, 0);
		dg_payload_write(logged);
		f->rax = (uint64_t)logged->result;
		return;
	}
	e = dg_event_begin(DG_EV_VALUE, f->rsi, f->r8, 0, f->rdx ? DG_PAYLOAD_ROOM(f->rdx) : 0);
	if (e) {
		e->result = (int64_t)f->rcx;
		if (f->rdx)
			dg_event_payload(e, DG_PAYLOAD_OUT, f->rsi, (const void *)f->rsi, (uint32_t)f->rdx);
		dg_event_commit(e);
	}
	f->rax = f->rcx;
}
