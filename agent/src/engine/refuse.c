/* Calls that the recorder does not pass on to the kernel. The tracer is told of the first
 * of each number, so that a program that fails because of it is not taken for broken. */
#include "engine/engine.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>

#define DG_REFUSED_CALLS 512u

static uint64_t dg_refused_told[DG_REFUSED_CALLS / 64];
static uint32_t dg_refused_pid; /* whose those are: a fork begins again */

/* error: the positive errno that the call is answered with, 0 if it is answered as if it
 * had been done. */
static void dg_refusal_tell(const struct dg_call *c, uint64_t error)
{
	uint64_t bit, nr = (uint64_t)c->nr;

	if (DG_CONTROL->mode != DG_MODE_RECORD || nr >= DG_REFUSED_CALLS)
		return;
	if (__atomic_exchange_n(&dg_refused_pid, DG_CONTROL->pid, __ATOMIC_RELAXED) != DG_CONTROL->pid)
		for (uint32_t i = 0; i < DG_REFUSED_CALLS / 64; i++)
			__atomic_store_n(&dg_refused_told[i], 0, __ATOMIC_RELAXED);
	bit = (uint64_t)1 << (nr % 64);
	if (__atomic_fetch_or(&dg_refused_told[nr / 64], bit, __ATOMIC_RELAXED) & bit)
		return;
	dg_trap(DG_TRAP_REFUSED, nr | error << 32, (uint64_t)dg_me->index << 48 | (dg_me->ordinal + 1));
}

/* The tracer is told once of a process that shares memory, and not again of its
 * children: they have it from there. */
static void dg_shared_tell(void)
{
	static bool told;

	if (DG_CONTROL->mode == DG_MODE_RECORD && !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		dg_trap(DG_TRAP_SHARED, 0, 0);
}

static void dg_call_refuse(struct dg_frame *f, const struct dg_call *c, long error)
{
	dg_refusal_tell(c, (uint64_t)-error);
	dg_call_answer(f, c, error);
}
