/* Locks of the engine's, whose holders are named: recursive, and free by
 * definition in a replay, where the log says which thread has them. */
#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

static bool dg_recording(void)
{
	return dg_mode == DG_MODE_RECORD;
}

struct dg_gate {
	uint32_t word; /* 0 free, 1 taken, 2 taken and waited for */
	uint32_t owner;
	uint32_t depth;
};

#define DG_GATE_PATIENCE 1 /* second: a busy machine's holder is late, not stuck */
#define DG_GATE_SPINS 100

static bool dg_gate_spin(struct dg_gate *g)
{
	uint32_t free;

	for (int i = 0; i < DG_GATE_SPINS; i++) {
		free = 0;
		if (!__atomic_load_n(&g->word, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&g->word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/* False if its holder keeps it too long: it may wait for this very thread. */
static bool dg_gate_wait(struct dg_gate *g, bool patient)
{
	struct timespec some = { DG_GATE_PATIENCE, 0 };

	while (__atomic_exchange_n(&g->word, 2, __ATOMIC_ACQUIRE))
		if (dg_sys4(SYS_futex, &g->word, FUTEX_WAIT_PRIVATE, 2, patient ? NULL : &some) == -ETIMEDOUT)
			return false;
	return true;
}

static bool dg_gate_take(struct dg_gate *g, bool patient)
{
	uint32_t me = dg_me->index;

	if (__atomic_load_n(&g->owner, __ATOMIC_RELAXED) != me) {
		if (dg_hunting() ? !dg_hunt_gate(g, patient) : !dg_gate_spin(g) && !dg_gate_wait(g, patient))
			return false;
		__atomic_store_n(&g->owner, me, __ATOMIC_RELAXED);
	}
	g->depth++;
	return true;
}

/* In a replay, before the event is taken. */
static void dg_gate_await(const struct dg_gate *g)
{
	if (dg_free())
		dg_free_gate(g);
	while (g->owner && g->owner != dg_me->index && dg_turn_catch_up(g->owner))
		;
}

/* In a replay no thread waits: the log says that it was free. */
static void dg_gate_retake(struct dg_gate *g, const struct dg_event *logged)
{
	if (g->owner && g->owner != dg_me->index)
		dg_diverge(DG_DIFFERS_STATE, logged, 0, dg_me->index, g->owner);
	g->owner = dg_me->index;
	g->depth++;
}

static void dg_gate_open(struct dg_gate *g)
{
	if (g->owner != dg_me->index || --g->depth)
		return;
	__atomic_store_n(&g->owner, 0, __ATOMIC_RELAXED);
	if (dg_recording() && __atomic_exchange_n(&g->word, 0, __ATOMIC_RELEASE) == 2)
		dg_sys3(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, 1);
}
