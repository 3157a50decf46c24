/* A replay with control.lazy: code between two events of a thread runs as late
 * as it may, right before the second. Whoever has taken an event gives the right
 * to run away on leaving the engine (it lags then) and continues when its own
 * next event is the next of all, or when a thread needs something that it has not done yet.
 *
 * Where a thread waited for its next event, the recording says when it came there
 * (DG_EVENT_ARRIVED), and that is as late as the code before it runs.
 *
 * Threads that look at variables which no event orders (a flag, a count of
 * finished work) find them set and continue, or not set and reach an event at once. So
 * the look was late between its events more often than early, while whoever sets
 * the variable under a mutex does so soon after the event. Hence a thread that takes a
 * mutex runs on until it has released the mutex as often as it took it, before any other
 * thread runs. A thread that returns from a wait under a mutex looks rather than sets. */
#include "engine/engine.h"
#include "engine/free.h"
#include "engine/sync.h"

static bool dg_turn_lags(uint32_t index)
{
	const struct dg_rthread *t = dg_rthread_number(index);

	return index && index <= DG_CONTROL->threads && t->behind && (t == dg_me || t->state == DG_R_WAITING);
}

/* When it reaches its next event, at the latest. */
static uint64_t dg_turn_arrival(const struct dg_rthread *t)
{
	const struct dg_event *e = (const struct dg_event *)t->next;

	if (t->next >= t->next_end)
		return UINT64_MAX;
	if (e->flags & DG_EVENT_EXTRA)
		return 0; /* the code before a point runs at once */
	return e->flags & DG_EVENT_ARRIVED && e->args ? dg_logged_args(e)[e->args - 1] : e->ticket;
}

/* The first of the threads that lag; 0: none. */
static uint32_t dg_turn_first_lagging(void)
{
	uint64_t first = UINT64_MAX, arrival;
	uint32_t found = 0;

	for (uint32_t i = 1; DG_CONTROL->lazy && i <= DG_CONTROL->threads; i++) {
		if (!dg_turn_lags(i))
			continue;
		arrival = dg_turn_arrival(dg_rthread_number(i));
		if (!found || arrival < first) {
			found = i;
			first = arrival;
		}
	}
	return found;
}

/* The thread that runs now: that of the next event, or one that lags and has
 * reached where it waits before that event. 0: there is no event any more. */
static uint32_t dg_turn_due(void)
{
	uint32_t next = dg_turn_next(), behind = next ? dg_turn_first_lagging() : 0;
	const struct dg_rthread *t = dg_rthread_number(next);

	if (!behind || next > DG_CONTROL->threads || t->next >= t->next_end ||
	    ((const struct dg_event *)t->next)->flags & DG_EVENT_EXTRA)
		return next;
	return dg_turn_arrival(dg_rthread_number(behind)) <= ((const struct dg_event *)t->next)->ticket ? behind : next;
}

/* The thread with the recorded tid; 0: none. */
static uint32_t dg_turn_thread(uint32_t tid)
{
	for (uint32_t i = 1; tid && i <= DG_CONTROL->threads; i++)
		if (dg_turn_lags(i) && dg_rthread_number(i)->tid == tid)
			return i;
	return 0;
}

/* The lagging thread that reaches such an event next; 0: none. */
static uint32_t dg_turn_comes_to(enum dg_kind kind, uint64_t object)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);
		const struct dg_event *e;

		if (!dg_turn_lags(i) || t->next >= t->next_end)
			continue;
		e = (const struct dg_event *)t->next;
		if (e->kind == kind && e->object == object)
			return i;
	}
	return 0;
}

/* Whether it took mutexes without an event that are still to be taken: if it was
 * the last to have one, it had it before whoever has it next. */
static bool dg_turn_owes(uint32_t index)
{
	return DG_CONTROL->lazy && dg_turn_lags(index) && dg_rthread_number(index)->budget;
}

static void dg_turn_lend(struct dg_rthread *me, uint32_t to)
{
	__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
	dg_turn_give(to);
	do
		dg_turn_wait(me);
	while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_RELAXED) != me->index);
	__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
}

/* For a thread whose event is the next of all, and which finds that it cannot be
 * yet: another thread (the first choice: whoever) runs on to its next event. False:
 * all have done so. */
static bool dg_turn_catch_up(uint32_t whoever)
{
	uint32_t who = dg_turn_lags(whoever) ? whoever : dg_turn_first_lagging();

	if (!DG_CONTROL->lazy || dg_free())
		return false;
	if (who)
		dg_turn_tries = 0;
	else if (dg_turn_tries++ < 2 * DG_CONTROL->threads)
		who = dg_turn_other(dg_me->index);
	if (!who)
		return false;
	dg_turn_lend(dg_me, who);
	return true;
}

static void dg_turn_lag(struct dg_rthread *me)
{
	uint32_t due;

	me->behind = 1;
	due = dg_turn_due();
	if (due && due != me->index)
		dg_turn_lend(me, due);
	me->behind = 0;
}

/* Not after events of which the wrappers do the rest: they call libc. */
static bool dg_turn_lags_behind(enum dg_kind kind, const uint64_t *args, uint32_t count)
{
	if (kind == DG_EV_ORDER)
		return false;
	if (kind == DG_EV_POINT)
		return false;
	return kind < DG_EV_MUTEX || kind > DG_EV_GUARD || !count || args[0] != DG_SYNC_REAL;
}

/* When the engine is left. */
static void dg_turn_leave(void)
{
	struct dg_rthread *me = dg_me;

	if (me && dg_mode == DG_MODE_REPLAY)
		dg_free_left();
	dg_turn_rounds = 0;
	if (!me || dg_point_leave(me) || !me->fresh)
		return;
	me->fresh = 0;
	if (!me->holds && !dg_thread_creates())
		dg_turn_lag(me);
	if (me->next >= me->next_end)
		dg_trap(DG_TRAP_LAST, me->index, 0);
	dg_signal_upcoming();
}

/* ---- mutexes ---- */

static void dg_turn_holds(struct dg_mutex *m)
{
	if (!DG_CONTROL->lazy || dg_me->holds)
		return;
	dg_me->holds = (uint64_t)m;
	++*dg_wait_count(&m->lock); /* so that the release reaches dg_op_released */
}

static bool dg_turn_released(const struct dg_mutex *m)
{
	if (!dg_me->holds || dg_me->holds != (uint64_t)m)
		return false;
	dg_me->holds = 0;
	--*dg_wait_count(&m->lock);
	return true;
}

/* wrap/mutex.c: where the wake-up of a release ends, as the kernel leaves it. */
extern const char dg_wake_took[] DG_HIDDEN;

/* Argument: the word that was released. It is entered by a jump, so that it
 * leaves no trace on the stack. A place that the controller looks for is not
 * left for another thread's. */
static void dg_op_released(struct dg_frame *f)
{
	bool held = !dg_me->budget && dg_turn_released((const struct dg_mutex *)f->rsi);

	f->rdi = f->rsi;
	f->rip = (uint64_t)dg_wake_took;
	f->rsp -= sizeof(uint64_t);
	if (held && dg_event_peek() && !dg_point_of(dg_event_peek()) && !dg_signal_comes() && !dg_thread_creates())
		dg_turn_lag(dg_me);
}
