/* The thread that runs next, of those that are ready. */
#include "engine/engine.h"
#include "hunt/hunt.h"

static uint32_t dg_hunt_list[DG_RTHREADS];
static uint32_t dg_hunt_count, dg_hunt_all;

#define DG_HUNT_DEPTH 64u
static uint64_t dg_hunt_changes[DG_HUNT_DEPTH]; /* steps at which the strategy does otherwise, in order */
static uint32_t dg_hunt_change, dg_hunt_change_count;
static int64_t dg_hunt_lowest; /* priority that was given */

/* splitmix64 (Steele et al. 2014). */
static uint64_t dg_hunt_random(void)
{
	uint64_t z = DG_HUNT->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t dg_hunt_below(uint64_t n)
{
	return n ? dg_hunt_random() % n : 0;
}

/* Change points of PCT, delays: drawn among the steps, without regard to whether
 * two are the same, as the papers do. */
static void dg_hunt_seed(void)
{
	struct dg_hunt *h = DG_HUNT;
	uint32_t count = 0;

	h->state = h->seed;
	dg_hunt_random();
	if (h->strategy == DG_HUNT_PCT)
		count = h->depth ? h->depth - 1 : 0;
	else if (h->strategy == DG_HUNT_DELAY)
		count = h->depth;
	if (count > DG_HUNT_DEPTH)
		count = DG_HUNT_DEPTH;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t step = 1 + dg_hunt_below(h->length);
		uint32_t at = i;

		for (; at && dg_hunt_changes[at - 1] > step; at--)
			dg_hunt_changes[at] = dg_hunt_changes[at - 1];
		dg_hunt_changes[at] = step;
	}
	dg_hunt_change = 0;
	dg_hunt_change_count = count;
	dg_hunt_lowest = 0;
}

/* The decision that is made is the next step. */
static bool dg_hunt_change_due(void)
{
	bool due = false;

	for (; dg_hunt_change < dg_hunt_change_count && dg_hunt_changes[dg_hunt_change] <= DG_HUNT->steps + 1; dg_hunt_change++)
		due = true;
	return due;
}

static bool dg_hunt_brief(const struct dg_rthread *t)
{
	return dg_hunt_of(t)->brief && dg_wait_stands(t);
}

/* Those who are ready, then those whose sleep may be over. */
static void dg_hunt_collect(void)
{
	bool brief = DG_HUNT->strategy != DG_HUNT_PLAN;

	dg_hunt_count = 0;
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (dg_hunt_ready(dg_rthread_number(i)))
			dg_hunt_list[dg_hunt_count++] = i;
	if (dg_hunt_count > DG_HUNT->most_ready)
		DG_HUNT->most_ready = dg_hunt_count;
	dg_hunt_all = dg_hunt_count;
	for (uint32_t i = 1; brief && i <= DG_CONTROL->threads; i++)
		if (dg_hunt_brief(dg_rthread_number(i)) && !dg_hunt_ready(dg_rthread_number(i)))
			dg_hunt_list[dg_hunt_all++] = i;
}

/* Of those who are ready, the first after the calling thread, itself last; 0:
 * no thread is. */
static uint32_t dg_hunt_behind(const struct dg_rthread *me)
{
	for (uint32_t i = 0; i < dg_hunt_count; i++)
		if (dg_hunt_list[i] > me->index)
			return dg_hunt_list[i];
	return dg_hunt_count ? dg_hunt_list[0] : 0;
}

static bool dg_hunt_listed(uint32_t index)
{
	for (uint32_t i = 0; i < dg_hunt_count; i++)
		if (dg_hunt_list[i] == index)
			return true;
	return false;
}

/* ---- strategies: which thread runs next; stays: whether the calling thread may ---- */

static uint32_t dg_hunt_by_lot(const struct dg_rthread *me, bool stays)
{
	uint32_t n = dg_hunt_all, at = (uint32_t)dg_hunt_below(n);

	if (!n)
		return 0;
	if (!stays && n > 1 && dg_hunt_list[at] == me->index)
		at = (at + 1) % n;
	return dg_hunt_list[at];
}

static void dg_hunt_rank(uint32_t index)
{
	struct dg_hunt_thread *x = &dg_hunt_threads[index];

	if (x->ranked)
		return;
	x->ranked = true;
	x->priority = 1 + (int64_t)(dg_hunt_random() >> 2);
}

/* A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs (Burckhardt
 * et al., ASPLOS 2010), 2.2. Who tries again in vain, or never waits, goes last. */
static uint32_t dg_hunt_by_rank(const struct dg_rthread *me, bool stays)
{
	uint32_t best = 0;

	if (!dg_hunt_all)
		return 0;
	for (uint32_t i = 0; i < dg_hunt_all; i++)
		dg_hunt_rank(dg_hunt_list[i]);
	if (dg_hunt_change_due() || (!stays && dg_hunt_listed(me->index)))
		dg_hunt_threads[me->index].priority = --dg_hunt_lowest;
	for (uint32_t i = 1; i < dg_hunt_all; i++)
		if (dg_hunt_threads[dg_hunt_list[i]].priority > dg_hunt_threads[dg_hunt_list[best]].priority)
			best = i;
	return dg_hunt_list[best];
}

/* Delay-bounded scheduling (Emmi et al., POPL 2011). A sleep that may be over at
 * once is. */
static uint32_t dg_hunt_by_turns(const struct dg_rthread *me, uint32_t plain)
{
	if (dg_hunt_brief(me))
		return me->index;
	return dg_hunt_change_due() && plain == me->index ? dg_hunt_behind(me) : plain;
}

static const struct dg_decision *dg_hunt_plan(void)
{
	return (const struct dg_decision *)(DG_ENGINE_HUNT + DG_HUNT_PLAN_AT);
}

/* The thread's next decision of the plan; NULL: none. */
static const struct dg_decision *dg_hunt_planned(uint32_t index)
{
	struct dg_hunt_thread *x = &dg_hunt_threads[index];
	const struct dg_decision *plan = dg_hunt_plan();
	uint32_t count = DG_HUNT->planned < DG_HUNT_DECISIONS ? DG_HUNT->planned : DG_HUNT_DECISIONS;

	if (!x->planned) {
		x->planned = true;
		while (x->plan < count && plan[x->plan].thread != index)
			x->plan++;
		for (x->plan_end = x->plan; x->plan_end < count && plan[x->plan_end].thread == index; x->plan_end++)
			;
	}
	while (x->plan < x->plan_end && plan[x->plan].step < x->steps) {
		DG_HUNT->unused++; /* its step was a point of the code that was not stopped at */
		x->plan++;
	}
	return x->plan < x->plan_end ? plan + x->plan : NULL;
}

static uint32_t dg_hunt_by_plan(const struct dg_rthread *me, uint32_t plain)
{
	const struct dg_decision *d = dg_hunt_planned(me->index);

	if (!d || d->step != dg_hunt_of(me)->steps)
		return plain;
	dg_hunt_of(me)->plan++;
	if (d->to <= DG_CONTROL->threads && (dg_hunt_listed(d->to) || dg_hunt_brief(dg_rthread_number(d->to))))
		return d->to;
	DG_HUNT->unused++;
	return plain;
}

/* ---- a decision ---- */

static void dg_hunt_note(const struct dg_rthread *me, uint32_t to, bool preempts)
{
	struct dg_decision *made = (struct dg_decision *)(DG_ENGINE_HUNT + DG_HUNT_MADE_AT);

	if (DG_HUNT->made == DG_HUNT_DECISIONS) {
		DG_HUNT->missing++;
		return;
	}
	made[DG_HUNT->made++] = (struct dg_decision){
		.thread = me->index, .to = to, .step = dg_hunt_of(me)->steps, .at = me->waits_for,
		.flags = preempts ? DG_DECISION_PREEMPTS : 0,
	};
}

static uint32_t dg_hunt_strategy(const struct dg_rthread *me, bool stays, uint32_t plain)
{
	switch (DG_HUNT->strategy) {
	case DG_HUNT_RANDOM:
		return dg_hunt_by_lot(me, stays);
	case DG_HUNT_PCT:
		return dg_hunt_by_rank(me, stays);
	case DG_HUNT_DELAY:
		return dg_hunt_by_turns(me, plain);
	default:
		return dg_hunt_by_plan(me, plain);
	}
}

__attribute__((noreturn)) static void dg_hunt_ends(enum dg_stuck why);
static struct dg_rthread *dg_turns_decide(const struct dg_rthread *me, bool yields);
static void dg_turns_points_passed(uint64_t passed);
static uint64_t dg_turns_stretch(void);

/* Whether a thread has been ready for too long while others ran in turn, each for a short time:
 * those that poll for what it is to do. Only operations look, which are the same whatever the
 * strategy, for a plan must reach the same. */
static bool dg_hunt_passed_over(const struct dg_rthread *me)
{
	bool any = false;

	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_hunt_thread *x = &dg_hunt_threads[i];

		if (i == me->index || !dg_hunt_ready(dg_rthread_number(i)))
			x->ready_at = 0;
		else if (!x->ready_at)
			x->ready_at = DG_HUNT->steps + 1;
		else
			any |= DG_HUNT->steps > x->ready_at + DG_HUNT_STREAK;
	}
	return any;
}

/* Of a sleep that may be over at once, the time is up when it is. */
static void dg_hunt_wakes(struct dg_rthread *t)
{
	struct dg_hunt_thread *x = dg_hunt_of(t);

	if (dg_hunt_ready(t))
		return;
	if (DG_HUNT->clock < x->deadline)
		DG_HUNT->clock = x->deadline;
}

/* NULL: no thread is ready. */
static struct dg_rthread *dg_hunt_decide(struct dg_rthread *me, bool yields)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);
	bool stays, forced;
	uint32_t plain, next;

	if (dg_by_turns)
		return dg_turns_decide(me, yields);
	dg_hunt_collect();
	x->steps++;
	forced = ++x->streak > DG_HUNT_STREAK || x->spins;
	x->spins = false;
	stays = !yields && !forced && dg_hunt_ready(me);
	plain = stays ? me->index : dg_hunt_behind(me);
	next = dg_hunt_strategy(me, stays, plain);
	if (!next) {
		x->steps--;
		return NULL;
	}
	if (++DG_HUNT->steps > DG_HUNT->most && DG_HUNT->most)
		dg_hunt_ends(DG_STUCK_EVENTS);
	if (next != plain)
		dg_hunt_note(me, next, stays && next != me->index);
	if (next != me->index || forced)
		x->streak = 0;
	dg_hunt_threads[next].ready_at = 0;
	dg_hunt_wakes(dg_rthread_number(next));
	return dg_rthread_number(next);
}

/* The thread that a wake-up at the word is for: the first by number in plans, for
 * it must be the same then; else the first is as right as any. */
static struct dg_hunt_thread *dg_hunt_waiter(const void *word)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_hunt_thread *x = &dg_hunt_threads[i];

		if (x->wait.how == DG_WAIT_WAKE && x->wait.word == (uint64_t)word && !x->wait.woken &&
		    dg_wait_stands(dg_rthread_number(i)))
			return x;
	}
	return NULL;
}

/* ---- points of the code ---- */

/* Those that the thread has reached since it continued are steps; the one that it
 * is at is the decision's that is made there. */
static void dg_hunt_passed(struct dg_rthread *me, bool at_one)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);
	uint64_t passed = me->points_start - me->points, sites = dg_point_passed_by(me, passed);

	dg_hunt_holds_no_more(me);
	me->points = me->points_start;
	x->since += passed - sites;
	if (dg_by_turns)
		dg_turns_points_passed(passed);
	if (dg_live == 1 || !passed)
		return;
	passed -= at_one;
	x->steps += passed;
	x->streak += passed;
	DG_HUNT->steps += passed;
	DG_HUNT->points += passed + at_one;
}

/* How many points the thread may reach before it has to ask. */
static uint64_t dg_hunt_stretch(const struct dg_rthread *me)
{
	const struct dg_hunt_thread *x = dg_hunt_of(me);
	uint64_t n = x->streak < DG_HUNT_STREAK ? DG_HUNT_STREAK + 1 - x->streak : 1, most = n;
	const struct dg_decision *d;

	switch (DG_HUNT->strategy) {
	case DG_HUNT_RANDOM:
		most = DG_HUNT->chance ? 1 + dg_hunt_below(2 * 65536 / DG_HUNT->chance) : n;
		break;
	case DG_HUNT_PCT:
	case DG_HUNT_DELAY:
		if (dg_hunt_change < dg_hunt_change_count && dg_hunt_changes[dg_hunt_change] > DG_HUNT->steps)
			most = dg_hunt_changes[dg_hunt_change] - DG_HUNT->steps;
		break;
	default:
		d = dg_hunt_planned(me->index);
		if (d && d->step > x->steps)
			most = d->step - x->steps;
	}
	return most < n ? most : n;
}

/* Where a series of looks begins that the thread's step is of, of those in a row; 0:
 * the step is of none. The same steps are looked at whatever the strategy, for a plan
 * must reach the same. */
static uint64_t dg_hunt_look_from(uint64_t streak)
{
	for (uint64_t from = DG_HUNT_LOOK_FROM; from <= streak; from *= 8)
		if (streak < from + DG_HUNT_SPIN_LOOKS)
			return from;
	return 0;
}

/* How many points it may reach until it is looked at. */
static uint64_t dg_hunt_look_in(uint64_t streak)
{
	uint64_t from = DG_HUNT_LOOK_FROM;

	if (dg_hunt_look_from(streak + 1))
		return 1;
	while (from <= streak)
		from *= 8;
	return from - streak;
}

/* FNV-1a. */
static uint64_t dg_hunt_digest(uint64_t digest, const uint64_t *words, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		digest = (digest ^ words[i]) * 0x100000001b3ull;
	return digest;
}

/* Registers and the function's own variables. */
static uint64_t dg_hunt_state(const struct dg_frame *f)
{
	const uint64_t red_zone = 128, most = 4096, frame = f->rbp - f->rsp;
	uint64_t low = (f->rsp - red_zone) & ~7ull, high = frame < most ? f->rbp : f->rsp;
	uint64_t digest = dg_hunt_digest(0xcbf29ce484222325ull, &f->rax, 15);

	digest = dg_hunt_digest(dg_hunt_digest(digest, &f->origin, 1), &f->rsp, 1);
	return dg_hunt_digest(digest, (const uint64_t *)low, (high - low) / sizeof(uint64_t));
}

/* The step is none at which anything is decided; the engine is asked again where
 * something is, or where the thread is looked at. */
static void dg_hunt_asks(struct dg_rthread *me)
{
	const struct dg_hunt_thread *x = dg_hunt_of(me);
	uint64_t n = x->due > x->steps ? x->due - x->steps : 1, look = dg_hunt_look_in(x->streak);

	me->points = me->points_start = n < look ? n : look;
}

static void dg_hunt_counts(struct dg_rthread *me)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);

	x->steps++;
	x->streak++;
	DG_HUNT->steps++;
	dg_hunt_asks(me);
}

/* The thread leaves the engine: how far it may go. With one thread there is nothing
 * to decide. */
static void dg_hunt_goes_on(struct dg_rthread *me)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);
	bool alone = dg_live == 1;
	/* The engine may be entered without an event: locks taken since the last one still count. */
	uint64_t used = dg_skipped(me);

	if (x->ordinal != me->ordinal) {
		x->since = 0;
		if (dg_by_turns)
			x->looked_at = 0;
		dg_point_forget(me);
	}
	x->ordinal = me->ordinal;
	me->budget = alone || (dg_by_turns && !dg_lockstep_on()) ? DG_BUDGET : 0;
	me->budget_start = me->budget + used;
	if (alone || dg_by_turns) {
		me->points = me->points_start = alone ? DG_POINTS : dg_turns_stretch();
		return;
	}
	x->due = x->steps + dg_hunt_stretch(me);
	dg_hunt_asks(me);
}
