/* A recording that hunts: futexes, as runtimes that bypass pthreads use them, and
 * libc for itself. A thread that waits, waits in the engine. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "engine/wait.h"
#include "syscall.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

static int dg_hunt_futex_clock(const struct dg_call *c)
{
	if (c->nr == DG_FUTEX_WAIT2)
		return (int)c->args[5];
	return (uint32_t)c->args[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

static uint64_t dg_hunt_futex_deadline(const struct dg_call *c)
{
	struct timespec t;
	bool relative = c->nr == SYS_futex && ((uint32_t)c->args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
	uint64_t at = c->args[c->nr == DG_FUTEX_WAIT2 ? 4 : 3];

	if (!at)
		return DG_HUNT_NEVER;
	dg_copy(&t, (const void *)at, sizeof(t));
	if (dg_by_turns && !relative)
		return dg_turns_deadline(dg_hunt_ns(&t), dg_hunt_futex_clock(c));
	dg_turns_tick();
	return dg_hunt_ns(&t) + (relative ? DG_HUNT->clock : 0);
}

static long dg_hunt_futex_wait(const struct dg_call *c)
{
	const uint32_t *word = (const uint32_t *)c->args[0];
	struct dg_wait wait = { .how = DG_WAIT_WAKE, .word = c->args[0] };
	uint64_t at = c->args[c->nr == DG_FUTEX_WAIT2 ? 4 : 3];

	if (!dg_readable(c->args[0], 4) || (at && !dg_readable(at, sizeof(struct timespec))))
		return -EFAULT;
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != dg_futex_expected(c))
		return -EAGAIN;
	switch (dg_hunt_wait(wait, dg_hunt_futex_deadline(c), NULL, false)) {
	case DG_WAITED_TOO_LONG:
		return -ETIMEDOUT;
	case DG_WAIT_SIGNALLED:
		return DG_NOT_MADE;
	default:
		return 0;
	}
}

static long dg_hunt_futex_move(const struct dg_call *c, uint32_t operation)
{
	uint32_t woken;

	if (!dg_readable(c->args[0], 4) || !dg_readable(c->args[4], 4))
		return -EFAULT;
	if (operation == FUTEX_CMP_REQUEUE && *(const uint32_t *)c->args[0] != (uint32_t)c->args[5])
		return -EAGAIN;
	woken = dg_hunt_wake((const void *)c->args[0], (uint32_t)c->args[2]);
	dg_hunt_requeue((const void *)c->args[0], (const void *)c->args[4], (uint32_t)c->args[3]);
	return woken;
}

static long dg_hunt_futex_both(const struct dg_call *c)
{
	uint32_t old, code = (uint32_t)c->args[5], woken;
	int32_t than = (int32_t)(code << 20) >> 20;
	bool second;

	if (!dg_readable(c->args[4], 4))
		return -EFAULT;
	old = *(const uint32_t *)c->args[4];
	dg_futex_apply(c);
	woken = dg_hunt_wake((const void *)c->args[0], (uint32_t)c->args[2]);
	switch (code >> 24 & 15) {
	case FUTEX_OP_CMP_EQ:
		second = (int32_t)old == than;
		break;
	case FUTEX_OP_CMP_NE:
		second = (int32_t)old != than;
		break;
	case FUTEX_OP_CMP_LT:
		second = (int32_t)old < than;
		break;
	case FUTEX_OP_CMP_LE:
		second = (int32_t)old <= than;
		break;
	case FUTEX_OP_CMP_GT:
		second = (int32_t)old > than;
		break;
	default:
		second = (int32_t)old >= than;
	}
	return woken + (second ? dg_hunt_wake((const void *)c->args[4], (uint32_t)c->args[3]) : 0);
}

/* False: it is the kernel's. */
static bool dg_hunt_futex(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_pieces s = { .count = 0, .out = true };
	uint32_t operation = dg_futex_operation(c);
	long result;

	/* Other processes may wake a thread of this one, and be woken by it. */
	if (dg_by_turns && c->nr == SYS_futex && !((uint32_t)c->args[1] & FUTEX_PRIVATE_FLAG))
		return false;
	switch (operation) {
	case FUTEX_WAIT:
		result = dg_hunt_futex_wait(c);
		break;
	case FUTEX_WAKE:
		result = dg_hunt_wake((const void *)c->args[0], (uint32_t)c->args[2]);
		break;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		if (c->nr != SYS_futex)
			return false;
		result = dg_hunt_futex_move(c, operation);
		break;
	case FUTEX_WAKE_OP:
		result = dg_hunt_futex_both(c);
		break;
	default:
		return false;
	}
	if (result == DG_NOT_MADE) {
		dg_call_interrupted(f, c, DG_EVENT_SOFT);
		return true;
	}
	dg_call_log(c, &s, result, DG_EVENT_SOFT, 0);
	f->rax = (uint64_t)result;
	return true;
}
