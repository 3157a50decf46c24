/* A replay: whose turn it is, and what a thread finds in the log.
 *
 * One thread runs at a time, control.holder. It runs on after its event until
 * it arrives at its next one; there it gives the right to run to the thread
 * whose event is the next of all, and waits for its own. So a section of code
 * between two events of a thread runs where the recording has its start; or, as
 * control.lazy says, where it has its end: engine/lazy.c. */
#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "syscall.h"

#include <linux/futex.h>

#define DG_TURN_SPINS 200
#define DG_TURN_LOOKS (1u << 20)
#define DG_TURN_PROCESSORS 8192u

static uint32_t dg_point_passed[DG_RTHREADS]; /* a search's points that a thread is past */

/* Values of dg_rthread.go: a thread that sleeps must be woken by the kernel. */
enum { DG_GO_WAIT = 0, DG_GO_RUN = 1, DG_GO_SLEEPS = 2 };

static uint32_t dg_turn_spins; /* before a thread sleeps; on one processor no thread comes meanwhile */
static uint32_t dg_turn_tries; /* of dg_turn_catch_up with those who look for a change, since the last event */
/* How often the right went from one who looks for a change to another, since
 * anybody did anything else; after DG_TURN_ROUNDS of all no thread will. */
#define DG_TURN_ROUNDS 16
static uint32_t dg_turn_rounds;
static uint32_t dg_turn_first;              /* the thread that takes a futex event before its turn; 0: none */
static uint32_t dg_turn_ahead[DG_RTHREADS]; /* events that a thread took so */
static uint32_t dg_turn_alone; /* looks of a thread for a change that no thread is left to make, since the last event */

/* ---- the right to run ---- */

static uint32_t dg_turn_first_lagging(void);
static uint32_t dg_turn_due(void);
static bool dg_turn_lags_behind(enum dg_kind kind, const uint64_t *args, uint32_t count);
static void dg_event_done(struct dg_rthread *me, enum dg_kind kind, const uint64_t *args, uint32_t count);

/* The thread of the next event; 0: the log is at its end. */
static uint32_t dg_turn_next(void)
{
	struct dg_control *c = DG_CONTROL;

	for (;; c->left--) {
		uint32_t thread;

		while (!c->left && c->run < DG_IMAGE->run_count)
			if (++c->run < DG_IMAGE->run_count)
				c->left = ((const struct dg_run *)DG_IMAGE->runs)[c->run].events;
		if (!c->left)
			return 0;
		thread = ((const struct dg_run *)DG_IMAGE->runs)[c->run].thread;
		if (!dg_turn_ahead[thread % DG_RTHREADS])
			return thread;
		dg_turn_ahead[thread % DG_RTHREADS]--;
	}
}

/* Called by the thread that has the right, or by any thread while none has it. */
static void dg_turn_to(uint32_t index)
{
	struct dg_control *c = DG_CONTROL;

	if (c->holder != index)
		c->turns++;
	c->holder = index;
}

static void dg_turn_wake(struct dg_rthread *t)
{
	if (__atomic_exchange_n(&t->go, DG_GO_RUN, __ATOMIC_ACQ_REL) == DG_GO_SLEEPS)
		dg_sys3(SYS_futex, &t->go, FUTEX_WAKE, 1);
}

static void dg_turn_give(uint32_t index)
{
	struct dg_rthread *t = dg_rthread_number(index);

	if (index > DG_CONTROL->threads || index == dg_me->index || t->state == DG_R_NONE || t->state == DG_R_ENDED)
		dg_diverge(DG_DIFFERS_THREAD, NULL, 0, index, DG_CONTROL->threads);
	dg_turn_to(index);
	dg_turn_wake(t);
}

static void dg_turn_start(void)
{
	uint64_t processors[DG_TURN_PROCESSORS / 64] = { 0 };
	uint32_t count = 0;

	dg_sys3(SYS_sched_getaffinity, 0, sizeof(processors), processors);
	for (uint32_t i = 0; i < DG_TURN_PROCESSORS; i++)
		count += processors[i / 64] >> i % 64 & 1;
	dg_turn_spins = count == 1 ? 0 : DG_TURN_SPINS;
}

/* May return once too often: a thread that was given the right before it came
 * to wait for it finds that later. Callers look at control.holder. */
static void dg_turn_wait(struct dg_rthread *me)
{
	uint32_t go;

	for (uint32_t i = 0; i < dg_turn_spins; i++) {
		if (__atomic_load_n(&me->go, __ATOMIC_ACQUIRE) == DG_GO_RUN)
			break;
		__builtin_ia32_pause();
	}
	for (;;) {
		go = DG_GO_RUN;
		if (__atomic_compare_exchange_n(&me->go, &go, DG_GO_WAIT, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			dg_free_resume();
			return;
		}
		if (go == DG_GO_WAIT)
			__atomic_compare_exchange_n(&me->go, &go, DG_GO_SLEEPS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		else
			dg_sys4(SYS_futex, &me->go, FUTEX_WAIT, DG_GO_SLEEPS, 0);
	}
}

/* Whoever reaches rest last, the log being at its end, tells the controller.
 * A thread that the right was given to waits until it has woken. */
static void dg_turn_finish(void)
{
	static uint32_t told;

	if (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_SEQ_CST))
		return;
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);
		uint32_t state = __atomic_load_n(&t->state, __ATOMIC_SEQ_CST);

		/* Without a thread pointer, its maker rests before the clone. */
		if ((state == DG_R_STARTING && t->thread_pointer) || state == DG_R_RUNNING)
			return;
	}
	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) && dg_trap(DG_TRAP_FINISHED, 0, 0) == DG_FREE_IS)
		dg_free_finish();
}

/* To whom the schedule names; the caller's state says already that it does not
 * run. */
static void dg_turn_pass(void)
{
	struct dg_control *c = DG_CONTROL;
	uint32_t next;

	if (dg_free_pass())
		return;
	if (__atomic_load_n(&c->holder, __ATOMIC_RELAXED) == dg_me->index) {
		next = dg_turn_due();
		if (!next)
			next = dg_turn_first_lagging();
		if (next) {
			dg_turn_give(next);
			return;
		}
		/* Of this thread and one that reaches rest meanwhile, one sees both. */
		__atomic_store_n(&c->holder, 0, __ATOMIC_SEQ_CST);
	}
	dg_turn_finish();
}

/* The schedule names a thread that has no event. */
__attribute__((noreturn)) static void dg_turn_no_event(void)
{
	dg_free_past();
	dg_diverge(DG_DIFFERS_LOG, NULL, 0, 0, dg_me->index);
}

__attribute__((noreturn)) static void dg_turn_rest(void)
{
	__atomic_store_n(&dg_me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
	dg_turn_pass();
	do
		dg_turn_wait(dg_me);
	while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_RELAXED) != dg_me->index);
	dg_turn_no_event();
}

/* The thread's last act, after its DG_EV_EXIT. */
static void dg_turn_end(void)
{
	__atomic_store_n(&dg_me->state, DG_R_ENDED, __ATOMIC_SEQ_CST);
	dg_turn_pass();
}

__attribute__((noreturn)) static void dg_park(void)
{
	dg_free_park();
	dg_turn_rest();
}

__attribute__((noreturn)) void dg_park_here(enum dg_parked why, uint64_t with) DG_HIDDEN;
void dg_park_here(enum dg_parked why, uint64_t with)
{
	if (why == DG_PARKED_POINT)
		dg_point_here();
	if (why == DG_PARKED_TURN)
		dg_turns_here(with);
	dg_park();
}

static bool dg_turn_is(const struct dg_rthread *me)
{
	return dg_free() || dg_turn_next() == me->index || dg_turn_first == me->index;
}

/* Until the next event of all is one of this thread's, or the process has left the
 * recording and it is the thread's turn. */
static void dg_turn_take(struct dg_rthread *me)
{
	while (DG_CONTROL->holder != me->index || !dg_turn_is(me)) {
		__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
		/* It may have been given the right since the loop's condition was looked at. */
		if (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_ACQUIRE) == me->index && !dg_turn_is(me))
			dg_turn_pass();
		dg_turn_wait(me);
		__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
	}
}

/* ---- events ---- */

static void dg_event_pass(struct dg_rthread *me, const struct dg_event *e)
{
	me->next += e->length;
	if (dg_turn_first == me->index)
		dg_turn_ahead[me->index]++;
	else
		DG_CONTROL->left--;
	dg_turn_first = 0;
	dg_turn_tries = dg_turn_alone = dg_turn_rounds = 0;
}

static void dg_event_consume(struct dg_rthread *me, const struct dg_event *e)
{
	dg_event_pass(me, e);
	me->ordinal++;
	DG_CONTROL->consumed++;
}

/* So many mutexes may be taken before the next event must come. */
static void dg_budget_set(struct dg_rthread *me)
{
	const struct dg_event *e = dg_event_skip(me, dg_event_peek(), DG_EVENT_EXTRA);
	const struct dg_replay_thread *logged = dg_image_thread(me->index); /* NULL: created at the log's end */
	uint64_t skipped = e ? e->skipped : logged ? logged->skipped : UINT64_MAX;

	me->budget_start = me->budget = skipped < DG_BUDGET ? skipped : DG_BUDGET;
	dg_point_count(me);
}

/* A futex call that the recording has here and the replay has not. */
static void dg_event_soft(struct dg_rthread *me, const struct dg_event *e)
{
	uint64_t used = dg_skipped(me);

	/* As the call did in the recording, whenever it returned. */
	dg_gates_open();
	dg_turn_take(me);
	dg_event_consume(me, e);
	dg_budget_set(me);
	me->carried += e->skipped;
	me->budget_start += me->carried;
	me->budget = me->budget_start > used ? me->budget_start - used : 0;
}

static const struct dg_event *dg_event_await(enum dg_kind kind, uint64_t object)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_free_await(kind, object);
	bool passed = false;

	if (e)
		return e;
	me->waits_for = kind;
	me->waits_object = object;
	for (;;) {
		dg_point_before(me);
		e = dg_event_peek();
		if (!e)
			dg_turn_rest();
		if (!(e->flags & DG_EVENT_SOFT) || (e->kind == kind && e->object == object))
			break;
		dg_event_soft(me, e);
		passed = true;
	}
	dg_turn_take(me);
	if (passed)
		dg_signal_passed(e);
	return e;
}

static void dg_event_compare(const struct dg_event *e, const struct dg_event *came, const uint64_t *args, uint32_t count)
{
	const uint64_t *logged = dg_logged_args(e);
	uint64_t skipped = came->skipped - dg_me->carried;

	if (e->kind != came->kind)
		dg_diverge_at(DG_DIFFERS_KIND, e, 0, e->kind, came->kind, came, args, count);
	if (e->object != came->object)
		dg_diverge_at(DG_DIFFERS_OBJECT, e, 0, e->object, came->object, came, args, count);
	if (e->site != came->site)
		dg_diverge_at(DG_DIFFERS_SITE, e, 0, e->site, came->site, came, args, count);
	if (e->skipped != skipped)
		dg_diverge_at(DG_DIFFERS_SKIPPED, e, 0, e->skipped, skipped, came, args, count);
	for (uint32_t i = 0; i < count; i++)
		if (i >= e->args || logged[i] != args[i])
			dg_diverge_at(DG_DIFFERS_ARGUMENT, e, i, i < e->args ? logged[i] : 0, args[i], came, args, count);
}

static void dg_event_moment(const struct dg_rthread *me)
{
	if (me->index == DG_CONTROL->stop_thread && me->ordinal == DG_CONTROL->stop_at)
		dg_trap(DG_TRAP_MOMENT, me->index, 0);
}

static void dg_event_take(const struct dg_event *logged, enum dg_kind kind, uint64_t object, uint64_t site,
			  const uint64_t *args, uint32_t count)
{
	struct dg_rthread *me = dg_me;
	struct dg_event came = {
		.kind = (uint8_t)kind, .args = (uint8_t)count, .object = object, .site = site, .skipped = dg_skipped(me),
	};

	if (dg_free_take(logged, &came, args, count))
		return;
	dg_event_compare(logged, &came, args, count);
	dg_event_consume(me, logged);
	me->waits_for = 0;
	me->carried = 0;
	dg_budget_set(me);
	dg_event_moment(me);
	dg_event_done(me, kind, args, count);
}

/* What comes next for the thread is prepared. */
static void dg_event_done(struct dg_rthread *me, enum dg_kind kind, const uint64_t *args, uint32_t count)
{
	/* Else what the tracer is asked to place, it is asked when the thread continues. */
	me->fresh = DG_CONTROL->lazy && dg_turn_lags_behind(kind, args, count);
	if (!me->fresh && me->next >= me->next_end && kind != DG_EV_EXIT && kind != DG_EV_END)
		dg_trap(DG_TRAP_LAST, me->index, 0);
	dg_signal_upcoming();
	dg_point_upcoming(me);
}

/* Another thread that waits as this one does, each in its turn. */
static uint32_t dg_turn_other(uint32_t me)
{
	static uint32_t last;

	for (uint32_t i = 0; i < DG_CONTROL->threads; i++) {
		last = last % DG_CONTROL->threads + 1;
		if (last != me && dg_rthread_number(last)->yields)
			return last;
	}
	return 0;
}

/* All others stand at events that come later: a lock that one of them has stays
 * taken. Threads before their first event, or after their last, do not
 * have the right to run, and have a while. */
static void dg_turn_look(void)
{
	const struct dg_event *e = dg_event_peek();

	if (dg_turn_alone++ == DG_TURN_LOOKS)
		dg_diverge(DG_DIFFERS_KIND, e, 0, e->kind, dg_me->waits_for);
	dg_sys0(SYS_sched_yield);
}

/* All with the right to run look for a change, in turn. A futex call that another
 * is at orders nothing, and what it does after it may be the change. */
static uint32_t dg_turn_ahead_of(uint32_t due)
{
	const struct dg_event *e = dg_event_peek();

	if (!dg_rthread_number(due)->yields || dg_turn_rounds++ < DG_TURN_ROUNDS * DG_CONTROL->threads)
		return due;
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);
		const struct dg_event *stands = (const struct dg_event *)t->next;

		if (t == dg_me || t->yields || __atomic_load_n(&t->state, __ATOMIC_SEQ_CST) != DG_R_WAITING ||
		    t->next >= t->next_end || !(stands->flags & DG_EVENT_SOFT) || t->waits_for != stands->kind)
			continue;
		dg_turn_first = i;
		return i;
	}
	dg_diverge(DG_DIFFERS_KIND, e, 0, e->kind, dg_me->waits_for);
}

static void dg_turn_yield(enum dg_kind kind, uint64_t object)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_event_peek();
	uint32_t next;

	me->waits_for = kind;
	me->waits_object = object;
	/* No event of it: the recording ended before the thread came any further. */
	if (!e)
		dg_turn_rest();
	/* All of them wait for what this thread did in the recording, and here does not. */
	if (e->flags & DG_EVENT_SOFT && dg_turn_next() == me->index && !dg_turn_first_lagging()) {
		dg_event_soft(me, e);
		return;
	}
	me->yields = 1;
	next = dg_turn_due();
	if (!next || next == me->index) {
		uint32_t behind = dg_turn_first_lagging();

		if (behind)
			next = behind;
		else if (next) /* all who have events stand at theirs, which come later */
			next = dg_turn_other(me->index);
	}
	if (next) {
		next = dg_turn_ahead_of(next);
		__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
		dg_turn_give(next);
		do
			dg_turn_wait(me);
		while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_RELAXED) != me->index);
		__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
	} else {
		dg_turn_look();
	}
	me->yields = 0;
	me->waits_for = 0;
}
