/* A recording that hunts for a schedule: one thread runs at a time, until it reaches
 * its next event, a point of the code, or has to wait. There the engine
 * decides which thread runs: hunt/choice.c. Which threads can run follows from what the
 * variables say and from the operations before, not from time, so the same seed has
 * the same order of events each time, and the log is one that an ordinary replay
 * follows eagerly, races included.
 *
 * The operations are those of any recording. Where they would sleep, they come
 * here; where they would reach an event in a replay, they come here before it, so
 * that what others do meanwhile comes before it in both.
 *
 * Time is virtual (DG_HUNT->clock): it advances a little with each operation, and
 * where no thread can run, to the first time that a thread waits for. What the kernel says of
 * other processes and the outside is not in the engine's hand: hunt/call.c. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/wait.h"
#include "engine/sync.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <time.h>

/* ---- no thread is ready ---- */

static bool dg_probe_ready(const struct dg_probe *p);

/* Whether any thread that waits for something outside can continue. */
static bool dg_hunt_look_outside(void)
{
	bool any = false;

	for (uint32_t i = 1; dg_hunt_waiting_outside && i <= DG_CONTROL->threads; i++) {
		struct dg_hunt_thread *x = &dg_hunt_threads[i];

		if (!x->probe || x->wait.woken || !dg_probe_ready(x->probe))
			continue;
		x->wait.woken = true;
		any = true;
	}
	return any;
}

static bool dg_hunt_any_away(void)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (dg_hunt_threads[i].away && dg_wait_stands(dg_rthread_number(i)))
			return true;
	return false;
}

static bool dg_hunt_alone(void)
{
	return !dg_hunt_any_away();
}

/* The thread whose time is up first; NULL: none waits for a time. */
static struct dg_rthread *dg_hunt_earliest(void)
{
	struct dg_rthread *found = NULL;

	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);

		if (!dg_hunt_threads[i].wait.timed || !dg_wait_stands(t))
			continue;
		if (!found || dg_hunt_threads[i].deadline < dg_hunt_of(found)->deadline)
			found = t;
	}
	return found;
}

/* The tracer writes the core of the process as it stands, and ends it. */
__attribute__((noreturn)) static void dg_hunt_ends(enum dg_stuck why)
{
	static uint32_t never;

	if (!dg_trap(DG_TRAP_STUCK, dg_me->index, why))
		dg_sys1(SYS_exit_group, 255);
	for (;;)
		dg_sys4(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, 0);
}

__attribute__((noreturn)) static void dg_hunt_stuck(void)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (dg_wait_stands(dg_rthread_number(i)) && dg_wait_cycle(dg_rthread_number(i), dg_hunt_wait_of))
			dg_hunt_ends(DG_STUCK_CYCLE);
	dg_hunt_ends(DG_STUCK_BLOCKED);
}

static bool dg_hunt_any_ready(void)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (dg_hunt_ready(dg_rthread_number(i)))
			return true;
	return false;
}

/* Until a thread is ready: the outside has a while of real time before virtual time
 * advances, and all of it where there is no time to wait for. */
static void dg_hunt_idle(void)
{
	struct timespec some = { 0, 1000000 };

	if (dg_by_turns) {
		dg_turns_idle();
		return;
	}
	for (int i = 0;; i++) {
		struct dg_rthread *t = dg_hunt_earliest();
		bool outside = dg_hunt_waiting_outside || dg_hunt_any_away();

		if (t && (!outside || i >= DG_HUNT_GRACE_MS)) {
			if (dg_hunt_of(t)->deadline > DG_HUNT->clock)
				DG_HUNT->clock = dg_hunt_of(t)->deadline;
			return;
		}
		if (!outside)
			dg_hunt_stuck();
		dg_sys2(SYS_nanosleep, &some, 0);
		dg_hunt_look_outside();
		if (dg_hunt_any_ready())
			return;
	}
}

/* The thread that runs now: one that is ready. The calling thread has the right. */
static struct dg_rthread *dg_hunt_next(struct dg_rthread *me, bool yields)
{
	struct dg_rthread *next;

	for (;;) {
		dg_turns_tick();
		dg_hunt_look_outside();
		next = dg_hunt_decide(me, yields);
		if (next)
			return next;
		dg_hunt_idle();
	}
}

/* ---- the right to run ---- */

static void dg_hunt_lend(struct dg_rthread *me, const struct dg_rthread *to)
{
	if (to == me)
		return;
	DG_HUNT->switches++;
	dg_hunt_of(me)->unseen = !dg_turn_may_end();
	dg_turn_lend(me, to->index);
	if (dg_by_turns && dg_hunt_ready(me))
		dg_turns_arm(me);
}

/* Returns when it has the right and is ready. */
static enum dg_waited dg_hunt_wait(struct dg_wait wait, uint64_t deadline, const struct dg_probe *probe, bool brief)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);
	enum dg_waited how = DG_WAITED;
	bool polls;

	dg_turns_tick();
	/* A wait whose time is up when it begins is a poll: others go first. */
	polls = deadline <= DG_HUNT->clock;
	x->wait = wait;
	x->wait.timed = deadline != DG_HUNT_NEVER;
	x->deadline = deadline;
	x->probe = probe;
	x->brief = brief;
	dg_hunt_waiting_outside += !!probe;
	if (polls && !dg_by_turns)
		DG_HUNT->clock += DG_HUNT_YIELD_NS;
	do
		dg_hunt_lend(me, dg_hunt_next(me, polls));
	while (!dg_hunt_ready(me));
	if (!dg_wait_over(&x->wait))
		how = me->pending ? DG_WAIT_SIGNALLED : DG_WAITED_TOO_LONG;
	else if (x->wait.expired)
		how = DG_WAITED_TOO_LONG;
	dg_hunt_waiting_outside -= !!probe;
	x->wait = (struct dg_wait){ .how = DG_WAIT_NOTHING };
	x->probe = NULL;
	x->brief = false;
	return how;
}

/* No thread can have the right. Of one that comes back meanwhile, and finds that it is taken,
 * and this thread, one sees the other. */
static void dg_hunt_drop(void)
{
	uint32_t nobody = 0;

	__atomic_store_n(&DG_CONTROL->holder, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);

		if (!dg_hunt_threads[i].away || !dg_hunt_ready(t))
			continue;
		if (__atomic_compare_exchange_n(&DG_CONTROL->holder, &nobody, i, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			dg_turn_wake(t);
		return;
	}
}

/* Gives the right away for as long as the thread is in a call that only the kernel
 * ends. If no thread is ready, one of those that wait makes time pass. */
static void dg_hunt_leave(struct dg_rthread *me)
{
	struct dg_rthread *next = NULL;

	dg_hunt_of(me)->unseen = !dg_turn_may_end();
	dg_turns_tick();
	dg_hunt_look_outside();
	next = dg_hunt_decide(me, false);
	for (uint32_t i = 1; !next && i <= DG_CONTROL->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);

		if (t != me && dg_wait_stands(t) && !dg_hunt_threads[i].away)
			next = t;
	}
	if (next) {
		DG_HUNT->switches++;
		dg_turn_give(next->index);
	} else {
		if (dg_by_turns)
			dg_turns_disarm();
		dg_hunt_drop();
	}
}

static void dg_hunt_away(void)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);

	x->back = false;
	x->away = true;
	dg_hunt_leave(me);
}

static void dg_hunt_back(void)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);
	uint32_t nobody = 0;

	__atomic_store_n(&x->back, true, __ATOMIC_SEQ_CST);
	dg_turns_ring();
	if (__atomic_compare_exchange_n(&DG_CONTROL->holder, &nobody, me->index, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		dg_turns_anew();
	else
		while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_SEQ_CST) != me->index) {
			__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
			dg_turn_wait(me);
		}
	__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
	if (dg_by_turns && dg_turns_armed != me->index)
		dg_turns_arm(me);
	x->away = x->back = false;
	x->streak = 0;
}

/* ---- what the operations call ---- */

/* Where all that are ready only try again in vain, what they wait for may be what
 * a thread does whose time is not up. */
static void dg_hunt_passes(bool vain)
{
	static uint32_t row; /* tries in vain by whomever, with nothing else between */
	const struct dg_rthread *t;

	row = vain ? row + 1 : 0;
	if (row <= DG_HUNT_VAIN * dg_live)
		return;
	row = 0;
	t = dg_hunt_earliest();
	if (t && dg_hunt_of(t)->deadline > DG_HUNT->clock)
		DG_HUNT->clock = dg_hunt_of(t)->deadline;
}

static void dg_hunt_arrive(enum dg_kind kind, uint64_t object)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);
	bool yields = x->vain >= DG_HUNT_VAIN, vain = x->vain;

	if (dg_by_turns) {
		dg_turns_arrive(kind, object);
		return;
	}

	me->waits_for = kind;
	me->waits_object = object;
	if (yields)
		x->vain = 0;
	if (dg_live > 1) {
		DG_HUNT->clock += yields ? DG_HUNT_YIELD_NS : DG_HUNT_STEP_NS;
		dg_hunt_passes(vain);
		yields |= dg_hunt_passed_over(me);
		do
			dg_hunt_lend(me, dg_hunt_next(me, yields));
		while (!dg_hunt_ready(me));
	}
	x->wait = (struct dg_wait){ .how = DG_WAIT_NOTHING };
}

/* A thread at a lock that is taken is not ready. */
static void dg_hunt_arrive_at(enum dg_kind kind, const void *object, const uint32_t *word, uint32_t taken)
{
	dg_hunt_of(dg_me)->wait = (struct dg_wait){ .how = DG_WAIT_CHANGE, .word = (uint64_t)word, .value = taken };
	dg_hunt_arrive(kind, (uint64_t)object);
}

/* The lock of a freed mutex has any value. */
static void dg_hunt_arrive_at_mutex(const struct dg_mutex *m)
{
	uint32_t taken = m->lock ? m->lock : 1;

	dg_hunt_arrive_at(DG_EV_MUTEX, m, &m->lock, taken);
}

static void dg_hunt_begin(void)
{
	struct dg_rthread *me = dg_me;

	/* Its state stays that of a thread that starts. */
	while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_ACQUIRE) != me->index)
		dg_turn_wait(me);
	dg_hunt_of(me)->begun = true;
	if (dg_by_turns)
		dg_turns_arm(me);
}

static void dg_hunt_end(void)
{
	if (dg_by_turns)
		dg_turns_timer_end(dg_me);
	dg_hunt_of(dg_me)->begun = false;
	dg_hunt_leave(dg_me);
}

static void dg_hunt_signalled(void)
{
	dg_hunt_passed(dg_me, false);
	dg_hunt_goes_on(dg_me);
}

/* A thread that reaches a point in the state that it had there before spins: only
 * another one can end that. */
static bool dg_hunt_spins(const struct dg_frame *f)
{
	struct dg_hunt_thread *x = dg_hunt_of(dg_me);
	uint64_t from = dg_hunt_look_from(x->streak + 1), state;

	if (!from)
		return false;
	if (from == x->streak + 1)
		x->looked_at = 0;
	state = dg_hunt_state(f);
	for (uint32_t i = 0; i < x->looked_at; i++)
		if (x->looked[i] == state)
			return true;
	if (x->looked_at < DG_HUNT_SPIN_LOOKS)
		x->looked[x->looked_at++] = state;
	return false;
}

static bool dg_hunt_holds(const struct dg_rthread *me)
{
	return dg_hunting() && dg_hunt_of(me)->held;
}

static void dg_hunt_holds_no_more(struct dg_rthread *me)
{
	if (!dg_hunt_of(me)->held)
		return;
	dg_hunt_of(me)->held = false;
	dg_mask_set(dg_kernel_mask(me->mask));
}

/* The thread is at a point, the place of which class and count tell a replay. Returns whether another continued there. The log
 * has the place before: the thread may never continue. */
static bool dg_hunt_preempted(struct dg_rthread *me, enum dg_point class, uint64_t count)
{
	struct dg_rthread *next = dg_live > 1 ? dg_hunt_next(me, false) : me;
	struct dg_event *e = next == me ? NULL : dg_event_begin(DG_EV_POINT, me->waits_object, 0, 2, 0);

	if (e) {
		dg_event_args(e)[0] = class;
		dg_event_args(e)[1] = count;
		dg_event_commit_pending(e);
	}
	dg_hunt_lend(me, next);
	if (e)
		dg_event_due(e);
	return next != me;
}

/* A point next to a call that is no event there: after one that releases or signals, or
 * at one that is about to wait and gives a mutex away. A replay finds it by the pc,
 * which the thread reaches once: each such call is after an event, or is one. Returns
 * whether the thread was preempted. */
static bool dg_hunt_call_point(struct dg_rthread *me, uint64_t pc)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);

	if (dg_by_turns || dg_live == 1 || !pc || dg_in_library(pc) || dg_point_jumps(pc))
		return false;
	me->waits_for = DG_EV_POINT;
	me->waits_object = pc;
	DG_HUNT->points++;
	/* A lot is drawn as at any operation: these are as many as those that take the lock that is released. */
	if (x->steps + 1 < x->due && DG_HUNT->strategy != DG_HUNT_RANDOM) {
		dg_hunt_counts(me);
		return false;
	}
	return dg_hunt_preempted(me, DG_POINT_PC, 1);
}

/* Whether a thread is at a point in a state that it had at a point since its last event. It may have changed memory meanwhile, and compute;
 * then its turn ends early. Where all threads spin as they did before, what they wait for comes from outside: turns last as long as they do
 * otherwise. */
static bool dg_turns_spins(const struct dg_frame *f)
{
	struct dg_hunt_thread *x = dg_hunt_of(dg_me);
	uint64_t state = dg_hunt_state(f);

	for (uint32_t i = 0; i < x->looked_at; i++)
		if (x->looked[i] == state) {
			dg_turns_idle_spins = x->spun == state ? dg_turns_idle_spins + 1 : 0;
			x->spun = state;
			x->spins_on = DG_TURN_POINTS_SPINS_ON;
			dg_turns_spun++;
			return dg_turns_idle_spins <= dg_live;
		}
	x->spins_on -= !!x->spins_on;
	if (x->looked_at == DG_HUNT_SPIN_LOOKS)
		x->looked_at = 0;
	x->looked[x->looked_at++] = state;
	return false;
}

/* Where threads take turns. */
static void dg_turns_point(const struct dg_frame *f, const struct dg_point_stub *stub)
{
	struct dg_rthread *me = dg_me;
	uint64_t count;

	dg_lockstep_enters();
	dg_hunt_passed(me, true);
	count = stub ? dg_point_arrival(me, stub) : dg_hunt_of(me)->since;
	if (count >> DG_TURN_POINTS_OCTAVES)
		dg_turns_points = UINT64_MAX; /* the timer ends it */
	else if (dg_live > 1 && (dg_lockstep_due() || (dg_turns_looks() && dg_turns_spins(f))))
		dg_turns_points = 0;
	if (dg_live > 1 && !dg_turns_points && dg_turns_may_end(me) && count) {
		me->waits_for = DG_EV_POINT;
		me->waits_object = f->origin;
		DG_HUNT->turn_over = 1;
		dg_hunt_preempted(me, stub ? DG_POINT_PC : DG_POINT_CODE, count);
	}
	dg_hunt_goes_on(me);
	dg_lockstep_leaves();
}

static void dg_hunt_point(struct dg_frame *f)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);
	const struct dg_point_stub *stub = (const struct dg_point_stub *)f->again_rax;

	if (dg_by_turns) {
		dg_turns_point(f, stub);
		return;
	}
	me->waits_for = DG_EV_POINT;
	me->waits_object = f->origin;
	dg_hunt_passed(me, true);
	x->spins = dg_live > 1 && dg_hunt_spins(f);
	if (x->spins) {
		DG_HUNT->clock += DG_HUNT_YIELD_NS;
		dg_hunt_passes(true);
	} else if (dg_live > 1 && x->steps + 1 < x->due) {
		dg_hunt_counts(me);
		return;
	}
	dg_hunt_preempted(me, stub ? DG_POINT_PC : DG_POINT_CODE, stub ? dg_point_arrival(me, stub) : x->since);
	dg_hunt_goes_on(me);
}

/* ---- waits ---- */

static uint64_t dg_hunt_deadline(const struct dg_until *until)
{
	if (!until)
		return DG_HUNT_NEVER;
	if (until->at.tv_sec < 0)
		return 0;
	if ((uint64_t)until->at.tv_sec >= DG_HUNT_NEVER / 1000000000)
		return DG_HUNT_NEVER - 1;
	if (dg_by_turns)
		return dg_turns_deadline((uint64_t)until->at.tv_sec * 1000000000 + (uint64_t)until->at.tv_nsec, until->clock);
	return (uint64_t)until->at.tv_sec * 1000000000 + (uint64_t)until->at.tv_nsec;
}

/* Whether the kernel starts a call again that the signal which waits for the
 * thread interrupts: signal(7). */
static bool dg_hunt_restarts(void)
{
	return dg_me->pending && dg_actions[dg_info_word(dg_me->infos[0], 0)].flags & SA_RESTART;
}

static long dg_hunt_slept(enum dg_waited how, long result)
{
	dg_hunt_of(dg_me)->vain = 0;
	if (how == DG_WAITED_TOO_LONG)
		return -ETIMEDOUT;
	if (how == DG_WAIT_SIGNALLED)
		return dg_hunt_restarts() ? -ERESTART : -EINTR;
	return result;
}

static long dg_hunt_sleep(const void *word, uint32_t expected, const struct dg_until *until)
{
	struct dg_wait wait = { .how = DG_WAIT_CHANGE, .word = (uint64_t)word, .value = expected };

	return dg_hunt_slept(dg_hunt_wait(wait, dg_hunt_deadline(until), NULL, false), -EAGAIN);
}

static long dg_hunt_sleep_until_woken(const void *word, const struct dg_until *until)
{
	struct dg_wait wait = { .how = DG_WAIT_WAKE, .word = (uint64_t)word };

	return dg_hunt_slept(dg_hunt_wait(wait, dg_hunt_deadline(until), NULL, false), 0);
}

static uint32_t dg_hunt_wake(const void *word, uint32_t most)
{
	uint32_t woken = 0;

	for (; woken < most; woken++) {
		struct dg_hunt_thread *x = dg_hunt_waiter(word);

		if (!x)
			break;
		x->wait.woken = true;
	}
	return woken;
}

static void dg_hunt_requeue(const void *from, const void *to, uint32_t most)
{
	struct dg_hunt_thread *x;

	while (most-- && (x = dg_hunt_waiter(from)))
		x->wait.word = (uint64_t)to;
}

static void dg_hunt_vain(void)
{
	dg_hunt_of(dg_me)->vain++;
}

static bool dg_hunt_gate(struct dg_gate *g, bool patient)
{
	struct dg_hunt_thread *x = dg_hunt_of(dg_me);
	struct dg_until until = { .clock = CLOCK_MONOTONIC };
	uint64_t limit;
	uint32_t owner;

	dg_turns_tick();
	limit = DG_HUNT->clock + DG_GATE_PATIENCE * 1000000000ull;
	until.at = (struct timespec){ (int64_t)(limit / 1000000000), (int64_t)(limit % 1000000000) };
	x->deaf = true;
	while ((owner = g->owner))
		if (dg_hunt_sleep(&g->owner, owner, patient ? NULL : &until) == -ETIMEDOUT)
			break;
	x->deaf = false;
	if (owner)
		return false;
	g->word = 1;
	return true;
}

static void dg_hunt_pause(const uint32_t *word, uint64_t ns)
{
	struct dg_wait wait = { .how = DG_WAIT_CHANGE, .word = (uint64_t)word, .value = *word };

	dg_turns_tick();
	dg_hunt_of(dg_me)->deaf = true;
	dg_hunt_wait(wait, DG_HUNT->clock + ns, NULL, false);
	dg_hunt_of(dg_me)->deaf = false;
}

static uint64_t dg_hunt_now(void)
{
	return DG_HUNT->clock += DG_HUNT_LOOK_NS;
}

static uint64_t dg_hunt_counter(void)
{
	return dg_hunt_now() * 2;
}
