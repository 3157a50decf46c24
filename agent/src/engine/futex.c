/* Futexes, as runtimes that bypass pthreads use them: an atomic instruction
 * decides whether the kernel is asked at all, and no event orders those. So a
 * replay may reach a call that the recording did not make, and the other way
 * round. A call that is not in the log waits for the word to change. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "syscall.h"

#include <linux/futex.h>

#define DG_FUTEX_WAKE2 454

/* Of old and new calls alike; FUTEX_WAIT for all that wait for a word. */
static uint32_t dg_futex_operation(const struct dg_call *c)
{
	uint32_t operation = (uint32_t)c->args[1] & FUTEX_CMD_MASK;

	if (c->nr == DG_FUTEX_WAIT2)
		return FUTEX_WAIT;
	if (c->nr == DG_FUTEX_WAKE2)
		return FUTEX_WAKE;
	if (c->nr != SYS_futex)
		return FUTEX_REQUEUE;
	if (operation == FUTEX_WAIT_BITSET)
		return FUTEX_WAIT;
	return operation == FUTEX_WAKE_BITSET ? FUTEX_WAKE : operation;
}

static uint32_t dg_futex_expected(const struct dg_call *c)
{
	return (uint32_t)c->args[c->nr == DG_FUTEX_WAIT2 ? 1 : 2];
}

static bool dg_futex_inherits(uint32_t operation)
{
	return operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 || operation == FUTEX_UNLOCK_PI ||
	       operation == FUTEX_TRYLOCK_PI;
}

static void dg_futex_record(struct dg_frame *f, const struct dg_call *c)
{
	uint32_t operation = dg_futex_operation(c);
	struct dg_pieces s;
	uint64_t ticket;
	long result;

	if (dg_hunting() && dg_hunt_futex(f, c))
		return;
	/* A wake has its ticket from before whoever it wakes. */
	ticket = operation == FUTEX_WAIT || dg_by_turns ? 0 : dg_ticket();
	result = dg_blocking_call(c->nr, c->args, &dg_me->pending);

	if (result == DG_NOT_MADE) {
		dg_call_interrupted(f, c, DG_EVENT_SOFT);
		return;
	}
	s.count = 0;
	s.out = true;
	if (dg_futex_inherits(operation) && !result)
		dg_piece_out(&s, c->args[0], 4);
	dg_call_log(c, &s, result, DG_EVENT_SOFT, ticket);
	f->rax = (uint64_t)result;
}

/* FUTEX_WAKE_OP's operation on the second word: futex(2). */
static void dg_futex_apply(const struct dg_call *c)
{
	uint32_t *word = (uint32_t *)c->args[4], code = (uint32_t)c->args[5];
	uint32_t operation = code >> 28 & 7, argument = (uint32_t)((int32_t)(code << 8) >> 20);

	if (code >> 28 & FUTEX_OP_OPARG_SHIFT)
		argument = 1u << (argument & 31);
	switch (operation) {
	case FUTEX_OP_SET:
		*word = argument;
		return;
	case FUTEX_OP_ADD:
		*word += argument;
		return;
	case FUTEX_OP_OR:
		*word |= argument;
		return;
	case FUTEX_OP_ANDN:
		*word &= ~argument;
		return;
	case FUTEX_OP_XOR:
		*word ^= argument;
		return;
	}
}

static bool dg_futex_is(const struct dg_event *e, const struct dg_call *c)
{
	const uint64_t *args = dg_logged_args(e);

	return e->kind == DG_EV_SYSCALL && e->object == (uint64_t)c->nr && e->args >= 3 && e->site == c->site &&
	       args[0] == c->args[0] && args[1] == c->args[1] && args[2] == c->args[2];
}

/* Whether the call is in the log, after nothing but futex calls that the
 * recording made and the replay did not. */
static bool dg_futex_logged(const struct dg_call *c)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_event_peek();
	uint64_t end = me->next_end;

	while (e && (e->flags & DG_EVENT_SOFT) && !dg_futex_is(e, c)) {
		uint64_t next = (uint64_t)e + e->length;

		e = next < end && dg_event_sound((const struct dg_event *)next, end) ? (const struct dg_event *)next : NULL;
	}
	if (!e || !(e->flags & DG_EVENT_SOFT))
		return false;
	while (me->next != (uint64_t)e)
		dg_event_soft(me, dg_event_peek());
	return true;
}

static void dg_futex_wait(const struct dg_call *c)
{
	const uint32_t *word = (const uint32_t *)c->args[0];

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == dg_futex_expected(c))
		dg_turn_yield(DG_EV_SYSCALL, (uint64_t)c->nr);
}

static long dg_futex_unlogged(const struct dg_call *c, uint32_t operation)
{
	switch (operation) {
	case FUTEX_WAIT:
		dg_futex_wait(c);
		return 0; /* and not EAGAIN, which would stay in errno */
	case FUTEX_WAKE_OP:
		dg_futex_apply(c);
		return 0;
	case FUTEX_WAKE:
		return 0;
	default:
		dg_turn_yield(DG_EV_SYSCALL, (uint64_t)c->nr);
		return 0;
	}
}

static void dg_futex_replay(struct dg_frame *f, const struct dg_call *c)
{
	uint32_t operation = dg_futex_operation(c);
	const struct dg_event *e;

	if (!dg_futex_inherits(operation) && !dg_futex_logged(c)) {
		f->rax = (uint64_t)dg_futex_unlogged(c, operation);
		return;
	}
	e = dg_event_await(DG_EV_SYSCALL, (uint64_t)c->nr);
	dg_event_take(e, DG_EV_SYSCALL, (uint64_t)c->nr, c->site, c->args, 2);
	if (e->flags & DG_EVENT_INTERRUPTED) {
		dg_again(f);
		return;
	}
	if (operation == FUTEX_WAKE_OP && !dg_failed(e->result))
		dg_futex_apply(c);
	dg_payload_write(e);
	f->rax = (uint64_t)e->result;
}

static void dg_futex_call(struct dg_frame *f, const struct dg_call *c)
{
	if (DG_CONTROL->mode == DG_MODE_RECORD)
		dg_futex_record(f, c);
	else
		dg_futex_replay(f, c);
}
