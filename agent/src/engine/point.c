/* A replay: points, which are places between two events of a thread where it gives
 * the right to run away and waits until the schedule has it again. An image has
 * them as events. Of a log, they are events like others; those that a search for a
 * schedule put in (DG_EVENT_EXTRA) are counted nowhere, so that what the log says
 * of ordinals and positions stays so.
 *
 * How a thread reaches one: after an event the engine sees that it is next; the
 * code counts the points that it has and calls; and for an instruction the
 * controller is asked for, which sends the thread to dg_point_here. Who reaches an
 * event instead has gone another way. */
#include "engine/engine.h"
#include "engine/free.h"

/* The event, if it is a point. */
static const struct dg_event *dg_point_of(const struct dg_event *e)
{
	return e && e->kind == DG_EV_POINT && e->args && (e->args > 1 || dg_logged_args(e)[0] == DG_POINT_ATOMIC) ? e : NULL;
}

static uint64_t dg_point_class(const struct dg_event *e)
{
	return dg_logged_args(e)[0];
}

/* The thread's next event if that is a point of this class. */
static const struct dg_event *dg_point_next(enum dg_point class)
{
	const struct dg_event *e = dg_point_of(dg_event_peek());

	return e && dg_point_class(e) == class ? e : NULL;
}

/* The same of one that the controller looks for. */
static const struct dg_event *dg_point_placed(void)
{
	const struct dg_event *e = dg_point_next(DG_POINT_PC);

	return e ? e : dg_point_next(DG_POINT_STATE);
}

static void dg_point_count(struct dg_rthread *me)
{
	const struct dg_event *e = dg_point_next(DG_POINT_CODE), *atomic = dg_point_next(DG_POINT_ATOMIC);
	uint64_t count = e ? dg_logged_args(e)[1] : atomic ? (uint64_t)atomic->result : DG_POINTS;

	me->points_start = me->points = count;
}

/* Until it is the point's turn. A process that has diverged from the recording passes
 * over its points. */
static void dg_point_take(struct dg_rthread *me, const struct dg_event *e)
{
	uint64_t args[2] = { dg_point_class(e), e->args > 1 ? dg_logged_args(e)[1] : (uint64_t)e->result };

	me->waits_for = DG_EV_POINT;
	me->waits_object = e->object;
	dg_turn_take(me);
	me->waits_for = 0;
	if (dg_free())
		return;
	if (e->flags & DG_EVENT_EXTRA) {
		dg_event_pass(me, e);
		dg_point_passed[me->index % DG_RTHREADS]++;
		dg_point_count(me);
	} else {
		dg_event_consume(me, e);
		dg_budget_set(me);
		dg_event_moment(me);
	}
	dg_event_done(me, DG_EV_POINT, args, 2);
}

/* The thread's place right after an event. */
static void dg_point_hold(struct dg_rthread *me)
{
	const struct dg_event *e;

	while (!dg_free() && (e = dg_point_next(DG_POINT_EVENT)))
		dg_point_take(me, e);
}

/* The controller looks for the instruction from now on. */
static void dg_point_upcoming(struct dg_rthread *me)
{
	const struct dg_event *e = !me->fresh && !dg_free() ? dg_point_placed() : NULL;

	if (e)
		dg_trap(DG_TRAP_ARM, me->index, (uint64_t)e);
}

/* When the engine is left. The code up to a point runs after the event,
 * whatever the timing is. */
static bool dg_point_leave(struct dg_rthread *me)
{
	bool fresh = me->fresh;

	if (dg_mode != DG_MODE_REPLAY || dg_free() || dg_thread_creates() || !dg_point_of(dg_event_peek()) ||
	    !(dg_points || dg_point_placed()))
		return false;
	me->fresh = 0;
	if (dg_point_next(DG_POINT_EVENT))
		dg_point_hold(me);
	else if (fresh)
		dg_point_upcoming(me);
	return true;
}

/* Before an event is waited for. Some operations have several, so a thread may be
 * right after one without having left the engine. */
static void dg_point_before(struct dg_rthread *me)
{
	const struct dg_event *e;

	if (!dg_points || dg_free())
		return;
	dg_point_hold(me);
	e = dg_point_of(dg_event_peek());
	if (e && e->flags & DG_EVENT_EXTRA)
		dg_diverge(DG_DIFFERS_KIND, e, 0, e->kind, me->waits_for);
}

/* The code has reached a point, and has used up those that it had. */
static void dg_point_reached(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = NULL;

	if (dg_mode == DG_MODE_REPLAY && !dg_free())
		e = dg_point_next(DG_POINT_CODE);
	if (e)
		dg_point_take(me, e);
	else
		me->points_start = me->points = DG_POINTS;
}

/* From the controller, which gives the thread its registers back. */
__attribute__((noreturn)) static void dg_point_here(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_free() ? NULL : dg_point_placed();

	if (e)
		dg_point_take(me, e);
	dg_trap(DG_TRAP_UNPARK, me->index, 0);
	__builtin_unreachable();
}
