/* The engine: what records and replays. One translation unit of its own,
 * beside agent.c, because it may use general registers only: see engine/engine.h. */
#define DG_ENGINE_UNIT 1
#define _GNU_SOURCE

#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "syscall.h"

__thread struct dg_rthread *dg_me __attribute__((tls_model("initial-exec")));
uint32_t dg_mode;
uint32_t dg_wakes_here;

/* The numbers in engine/entry.S. */
#define DG_ASSERT_AT(type, member, at) _Static_assert(offsetof(struct type, member) == (at), #member)
DG_ASSERT_AT(dg_rthread, engine_sp, 24);
DG_ASSERT_AT(dg_rthread, inside, 32);
DG_ASSERT_AT(dg_rthread, raw, 92);
DG_ASSERT_AT(dg_rthread, pending, 168);
DG_ASSERT_AT(dg_rthread, stub, 1312);
DG_ASSERT_AT(dg_frame, rax, 0);
DG_ASSERT_AT(dg_frame, r15, 112);
DG_ASSERT_AT(dg_frame, rip, 120);
DG_ASSERT_AT(dg_frame, rsp, 128);
DG_ASSERT_AT(dg_frame, rflags, 136);
DG_ASSERT_AT(dg_frame, origin, 144);
DG_ASSERT_AT(dg_frame, again_rax, 152);
DG_ASSERT_AT(dg_frame, again_rsp, 160);
DG_ASSERT_AT(dg_frame, kind, 168);
_Static_assert(sizeof(struct dg_frame) == 176, "frame");
DG_ASSERT_AT(dg_stub, go, 0);
DG_ASSERT_AT(dg_stub, resume, 8);
DG_ASSERT_AT(dg_stub, kind, 32);

#include "engine/small.c"
#include "engine/log.c"
#include "engine/image.c"
#include "engine/window.c"
#include "engine/turn.c"
#include "engine/lazy.c"
#include "engine/point.c"
#include "engine/counter.c"

/* The parts, in the order in which they build on each other. An include takes
 * the place of the part. */

#include "engine/signal_frame.c"
#include "engine/alone.c"
#include "engine/signal_state.c"
#include "engine/signal_action.c"
#include "engine/signal_deliver.c"
#include "engine/signal.c"
#include "engine/signal_leave.c"
#include "engine/signal_calls.c"
#include "engine/sync.c"
#include "engine/mutex.c"
#include "engine/rwlock.c"
#include "engine/cond.c"
#include "engine/sem.c"
#include "engine/once.c"
#include "engine/sync_real.c"
#include "engine/start.c"
#include "engine/gate.c"
#include "engine/stack.c"
#include "engine/thread.c"
#include "engine/join.c"
#include "engine/order.c"

#include "engine/table.c"
#include "engine/parts.c"
#include "engine/memory.c"
#include "engine/patch.c"
#include "engine/unseen.c"
#include "engine/call.c"

#include "engine/refuse.c"
#include "engine/futex.c"
#include "engine/fork.c"
#include "engine/wait.c"
#include "engine/free.c"
#include "engine/free_log.c"
#include "engine/free_sync.c"
#include "engine/free_signal.c"
#include "engine/free_call.c"
#include "hunt/state.c"
#include "hunt/site.c"
#include "engine/atomic.c"
#include "hunt/choice.c"
#include "hunt/turns.c"
#include "hunt/lockstep.c"
#include "hunt/place.c"
#include "hunt/hunt.c"
#include "hunt/outside.c"
#include "hunt/futex.c"
#include "hunt/call.c"
#include "hunt/turns_call.c"
#include "hunt/operation.c"
#include "engine/ptrace.c"
#include "engine/syscall.c"

static dg_operation *const dg_call_table[DG_OPS] = {
	[DG_OP_START] = dg_op_start,
	[DG_OP_OBJECTS] = dg_op_objects,
	[DG_OP_RELEASED] = dg_op_released,
	DG_SYNC_OPERATIONS,
	[DG_OP_ORDER_BEGIN] = dg_op_order_begin,
	[DG_OP_ORDER_END] = dg_op_order_end,
	[DG_OP_HEAP] = dg_op_heap,
	[DG_OP_ORDER_WAIT] = dg_op_order_wait,
	[DG_OP_ORDER_WAKE] = dg_op_order_wake,
	[DG_OP_YIELD] = dg_op_yield,
	[DG_OP_VALUE] = dg_op_value,
	[DG_OP_CREATE_BEGIN] = dg_op_create_begin,
	[DG_OP_CREATE_END] = dg_op_create_end,
	[DG_OP_THREAD_START] = dg_op_thread_start,
	[DG_OP_JOIN_BEGIN] = dg_op_join_begin,
	[DG_OP_JOIN_END] = dg_op_join_end,
	[DG_OP_DETACH] = dg_op_detach,
	[DG_OP_CANCEL] = dg_op_cancel,
};

/* Called by engine/entry.S for dg_engine. */
void dg_call(struct dg_frame *f) DG_HIDDEN;
void dg_call(struct dg_frame *f)
{
	dg_operation *operation = f->rdi < DG_OPS ? dg_call_table[f->rdi] : NULL, *free = dg_free_operation(f->rdi);

	dg_free_enter(f, dg_call);
	if (free)
		operation = free;
	else if (dg_hunting())
		operation = dg_hunt_operation;
	f->rax = 0;
	if (dg_counter_traps != dg_me->counter_traps)
		dg_counter_follow();
	if (operation)
		operation(f);
	dg_turn_leave();
}

void dg_point_entered(struct dg_frame *f)
{
	dg_free_enter(f, dg_point_entered);
	if (dg_counter_traps != dg_me->counter_traps)
		dg_counter_follow();
	if (dg_hunting())
		dg_hunt_point(f);
	else if (dg_atomic_of(f))
		dg_atomic_entered(f);
	else
		dg_point_reached();
	dg_turn_leave();
}
