/* What a free process finds in the log. An operation looks for an event that
 * fits it from where its thread is: the next one, or one a few further on, and
 * then the thread has come past those between. What brings something in is looked
 * for further, and the events passed over stay for whoever asks for them: so a
 * descriptor gives its bytes, and a clock its times, in the recorded order. */
#include "engine/free.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>

#define DG_FREE_NEAR 16u
#define DG_FREE_FAR 4096u
#define DG_FREE_STREAK 3u /* far ones in a row, each after the last: the thread has passed the others */
#define DG_FREE_BUDGET 1000u /* mutexes taken without entering the engine */

#define DG_EVENT_USED 0x80u /* a flag that the image alone has */

static bool dg_free_used(const struct dg_event *e)
{
	return e->flags & DG_EVENT_USED;
}

/* What an event is about that an operation does not reach by itself. */
static bool dg_free_aside(const struct dg_event *e)
{
	return dg_free_used(e) || e->kind == DG_EV_LIMIT || e->kind == DG_EV_POINT || (e->flags & (DG_EVENT_SOFT | DG_EVENT_RAISED));
}

/* What brings something in, which others must not pass. */
static bool dg_free_brings(const struct dg_event *e)
{
	return e->kind == DG_EV_SYSCALL || e->kind == DG_EV_TSC || e->kind == DG_EV_VALUE || e->kind == DG_EV_FORK;
}

static const struct dg_event *dg_free_behind(const struct dg_rthread *me, const struct dg_event *e)
{
	uint64_t at = (uint64_t)e + e->length;

	if (at >= me->next_end || !dg_event_sound((const struct dg_event *)at, me->next_end))
		return NULL;
	return (const struct dg_event *)at;
}

/* The event that is looked for. */
struct dg_free_want {
	enum dg_kind kind;
	uint64_t object;      /* of a call: its number */
	uint64_t site;        /* 0: any */
	const struct dg_call *call;
	bool far, soft;
};

static bool dg_free_call_fits(const struct dg_event *e, const struct dg_call *c);

static bool dg_free_fits(const struct dg_event *e, const struct dg_free_want *w)
{
	if (e->kind != w->kind)
		return false;
	switch (e->kind) {
	case DG_EV_SYSCALL:
		return e->object == w->object && (!w->call || dg_free_call_fits(e, w->call));
	case DG_EV_HEAP:
	case DG_EV_SIGNAL:
	case DG_EV_SIGNAL_END:
		return e->object == w->object;
	default:
		return !w->site || e->site == w->site;
	}
}

/* Sets x->found; NULL: there is none. */
static const struct dg_event *dg_free_look(struct dg_rthread *me, const struct dg_free_want *w)
{
	struct dg_free_thread *x = dg_free_of(me);
	const struct dg_event *e = dg_event_peek();
	uint32_t passed = 0;

	x->found = NULL;
	for (; e && passed < (w->far ? DG_FREE_FAR : DG_FREE_NEAR); e = dg_free_behind(me, e)) {
		if (dg_free_aside(e) && !(w->soft && e->flags & DG_EVENT_SOFT && !dg_free_used(e)))
			continue;
		if (dg_free_fits(e, w) && (!passed || !(e->flags & DG_EVENT_INTERRUPTED))) {
			x->found = e;
			x->passed = passed;
			x->far = passed >= DG_FREE_NEAR;
			return e;
		}
		if (!w->far && dg_free_brings(e))
			return NULL;
		passed++;
	}
	return NULL;
}

/* The thread continues after the event; what it passes is over, but for signals. */
static void dg_free_advance(struct dg_rthread *me, const struct dg_event *to)
{
	struct dg_free_thread *x = dg_free_of(me);
	uint64_t stop = DG_CONTROL->stop_at;

	while (me->next < me->next_end) {
		const struct dg_event *e = dg_event_peek();

		if ((uint64_t)e > (uint64_t)to && !dg_free_aside(e))
			break;
		if (e != to && e->kind == DG_EV_SIGNAL && e->flags & DG_EVENT_RAISED)
			x->raised = x->raised ? x->raised : (uint64_t)e;
		else if (e != to && e->kind == DG_EV_SIGNAL && !dg_free_used(e))
			x->late = (uint64_t)e;
		me->next += e->length;
		if (e->flags & DG_EVENT_EXTRA)
			dg_point_passed[me->index]++;
		else
			me->ordinal++;
	}
	if (me->index == DG_CONTROL->stop_thread && x->ordinal < stop && stop <= me->ordinal)
		dg_trap(DG_TRAP_MOMENT, me->index, 0);
	x->ordinal = me->ordinal;
}

static void dg_free_use(struct dg_rthread *me, const struct dg_event *e)
{
	struct dg_free_thread *x = dg_free_of(me);

	((struct dg_event *)(uint64_t)e)->flags |= DG_EVENT_USED;
	x->streak = x->far && (uint64_t)e > x->last_far ? x->streak + 1 : 0;
	if (x->far)
		x->last_far = (uint64_t)e;
	if (!x->far || x->streak >= DG_FREE_STREAK)
		dg_free_advance(me, e);
	x->seldom = x->alone = 0;
}

/* Each event counts, in the log or not. */
static void dg_free_count(struct dg_rthread *me)
{
	struct dg_control *c = DG_CONTROL;

	if (c->free_most && c->consumed >= c->free_most)
		dg_free_ends(DG_STUCK_EVENTS);
	c->consumed++;
	me->waits_for = 0;
	me->carried = 0;
	me->budget_start = me->budget = DG_FREE_BUDGET;
}

/* One that the log does not have. */
static void dg_free_unlogged(struct dg_rthread *me)
{
	if (me->next >= me->next_end)
		dg_free_of(me)->past++;
	dg_free_alone(me, 1);
}

/* The event of an operation that has been done; NULL: the log has none. */
static const struct dg_event *dg_free_event(const struct dg_free_want *w)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_free_look(me, w), *expected = dg_event_peek();
	struct dg_event came = { .kind = (uint8_t)w->kind, .object = w->object, .site = w->site };

	while (expected && dg_free_aside(expected))
		expected = dg_free_behind(me, expected);
	if (expected != e)
		dg_free_note(DG_DIFFERS_KIND, expected, 0, expected ? expected->kind : 0, w->kind, &came);
	else if (!e)
		dg_free_note(DG_DIFFERS_KIND, NULL, 0, 0, w->kind, &came);
	dg_free_count(me);
	if (e)
		dg_free_use(me, e);
	else
		dg_free_unlogged(me);
	dg_signal_upcoming();
	return e;
}

/* An operation whose result does not come from the log. */
static const struct dg_event *dg_free_did(enum dg_kind kind, uint64_t object, uint64_t site)
{
	return dg_free_event(&(struct dg_free_want){ .kind = kind, .object = object, .site = site });
}

static void dg_free_at(enum dg_kind kind, uint64_t object)
{
	dg_me->waits_for = kind;
	dg_me->waits_object = object;
}

/* ---- for operations that are the same in every replay ---- */

#define DG_FREE_TIDS 1000000u
#define DG_FREE_TICKS 1000u

static uint64_t dg_free_counter; /* what rdtsc gave last */

static const struct dg_event *dg_free_make(enum dg_kind kind, uint64_t object)
{
	struct dg_free_thread *x = dg_free_of(dg_me);
	uint64_t tid = DG_CONTROL->pid + DG_FREE_TIDS + object;

	x->made.event = (struct dg_event){ .length = sizeof(x->made), .kind = (uint8_t)kind, .object = object };
	if (kind == DG_EV_FORK)
		x->made.event.result = -EAGAIN;
	if (kind == DG_EV_TSC)
		x->made.event.result = (int64_t)(dg_free_counter + DG_FREE_TICKS);
	if (kind == DG_EV_START || kind == DG_EV_CREATED) {
		x->made.event.args = 5;
		x->made.args[0] = x->made.args[1] = tid;
	}
	return &x->made.event;
}

/* A thread that is not in an operation that could be made again, where the log
 * is over: it waits until the process is free. */
static void dg_free_rest(struct dg_rthread *me)
{
	__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
	dg_turn_pass();
	do
		dg_turn_wait(me);
	while (!dg_free() || DG_CONTROL->holder != me->index);
	__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
}

static const struct dg_event *dg_free_await(enum dg_kind kind, uint64_t object)
{
	struct dg_rthread *me = dg_me;
	struct dg_free_want w = { .kind = kind, .object = object, .far = kind == DG_EV_TSC || kind == DG_EV_VALUE };
	const struct dg_event *e;

	if (!DG_CONTROL->free)
		return NULL;
	dg_free_at(kind, object);
	if (!dg_free()) {
		e = dg_event_peek();
		/* What a creation does first is not done twice. */
		if (kind == DG_EV_CREATE && e && e->kind != kind && !dg_free_aside(e))
			dg_diverge(DG_DIFFERS_KIND, e, 0, e->kind, kind);
		if (dg_free_of(me)->guarded || e)
			return NULL;
		dg_free_rest(me);
	}
	dg_free_turn();
	e = dg_free_look(me, &w);
	return e ? e : dg_free_make(kind, object);
}

static bool dg_free_same(const struct dg_event *e, const struct dg_event *came, const uint64_t *args, uint32_t count)
{
	if (e->kind != came->kind || e->object != came->object || e->site != came->site ||
	    e->skipped != came->skipped - dg_me->carried || count > e->args)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (dg_logged_args(e)[i] != args[i])
			return false;
	return true;
}

static bool dg_free_take(const struct dg_event *logged, const struct dg_event *came, const uint64_t *args, uint32_t count)
{
	struct dg_rthread *me = dg_me;
	struct dg_free_thread *x = dg_free_of(me);

	if (!DG_CONTROL->free)
		return false;
	if (!dg_free()) {
		bool creates = came->kind == DG_EV_CREATE && logged->kind == DG_EV_CREATE;

		if ((x->guarded && !creates) || dg_free_same(logged, came, args, count))
			return false;
		dg_free_begin();
		dg_free_note(DG_DIFFERS_KIND, logged, 0, logged->kind, came->kind, came);
		x->found = creates ? logged : NULL;
		x->passed = 0;
		x->far = false;
		x->aware = true;
	}
	dg_free_count(me);
	if (logged == &x->made.event || !x->found) {
		dg_free_note(DG_DIFFERS_KIND, dg_event_peek(), 0, 0, came->kind, came);
		if (came->kind == DG_EV_TSC || came->kind == DG_EV_VALUE || came->kind == DG_EV_FORK)
			DG_CONTROL->made_up++;
		dg_free_unlogged(me);
	} else {
		if (x->passed)
			dg_free_note(DG_DIFFERS_KIND, dg_event_peek(), 0, 0, came->kind, came);
		dg_free_use(me, logged);
	}
	if (came->kind == DG_EV_TSC)
		dg_free_counter = (uint64_t)logged->result;
	dg_signal_upcoming();
	return true;
}

static bool dg_free_upcoming(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_free_thread *x = dg_free_of(me);
	const struct dg_event *e;

	if (!dg_free())
		return false;
	e = dg_signal_next();
	me->pending = x->late || x->sents || (e && dg_logged_args(e)[0] != DG_SIGNAL_FAULT);
	return true;
}
