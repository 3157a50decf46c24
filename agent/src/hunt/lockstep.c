/* Young threads that take turns go in lockstep: as on processors of their own, of two that can run neither is far ahead of the other.
 *
 * Of each thread that is ready the engine knows for how long it has run; one that was woken, or that is new, begins at what the thread
 * that runs has, and a little later. At each event and each point the thread that runs is compared with the one that has run least. If it is
 * ahead by more than a slack, which is drawn for each turn, its turn ends there. So races of a few instructions, right after the start of
 * two threads, are about as frequent as they are without a recorder. As it takes longer to create one in a recording, those
 * that are created one after the other begin together, if the first has not begun by then. In one of several recordings turns are as
 * random as later on. */
#include "engine/engine.h"
#include "hunt/hunt.h"

#define DG_LOCKSTEP_RUNS 16u
#define DG_LOCKSTEP_TURNS 32768u    /* that may end so: a change of thread takes some 5 us, and as much again in a replay */
#define DG_LOCKSTEP_PART 64u        /* of what the threads ran: how long a turn is, at least, that neither an event nor a point ends */
#define DG_LOCKSTEP_PART_OCTAVES 3u
#define DG_LOCKSTEP_SLACK 4u        /* ns, the least, */
#define DG_LOCKSTEP_OCTAVES 3u      /* as many of one length as of twice that; */
#define DG_LOCKSTEP_WHILE 48u       /* turns, */
#define DG_LOCKSTEP_SCALES 5u       /* and then, for as long each, twice to so many times as many octaves */
#define DG_LOCKSTEP_BLIND 64u       /* one of so many turns ends by time alone */
#define DG_LOCKSTEP_WAKES 16u       /* ns, the least, until a thread runs that was woken, */
#define DG_LOCKSTEP_WAKES_OCTAVES 12u
#define DG_LOCKSTEP_BEGINS 4000u    /* and one that was created: with all that have not begun, */
#define DG_LOCKSTEP_BEGINS_OCTAVES 6u
#define DG_LOCKSTEP_APART 16u       /* so many apart */
#define DG_LOCKSTEP_APART_OCTAVES 5u
#define DG_LOCKSTEP_CREATION 15000u /* ns that it takes to create a thread without a recorder */
#define DG_LOCKSTEP_CALL 1000u      /* and that a short system call takes */
#define DG_LOCKSTEP_CALL_OURS 30000u /* what the recorder adds to a call at most */

static uint32_t dg_lockstep_left;  /* turns */
static uint64_t dg_lockstep_slack; /* of this turn; ns */
static uint64_t dg_lockstep_octaves = DG_LOCKSTEP_OCTAVES;
static uint64_t dg_lockstep_cost = UINT64_MAX; /* ns from one of these to the next where there is next to nothing between: the recorder's share */

static void dg_lockstep_start(void)
{
	dg_lockstep_left = dg_hunt_below(DG_LOCKSTEP_RUNS) ? DG_LOCKSTEP_TURNS : 0;
}

static bool dg_lockstep_on(void)
{
	return dg_lockstep_left && dg_turns_young();
}

/* A thread was created. It begins together with those that were created before it and have not begun. */
static void dg_lockstep_gather(uint64_t ran)
{
	ran += dg_turns_draw(DG_LOCKSTEP_BEGINS, DG_LOCKSTEP_BEGINS_OCTAVES);
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (!dg_hunt_threads[i].begun)
			dg_hunt_threads[i].ran = ran + dg_turns_draw(DG_LOCKSTEP_APART, DG_LOCKSTEP_APART_OCTAVES);
}

/* Of the other threads that are ready, the one that has run least; NULL: none is. The calling one has run for so many ns. */
static struct dg_rthread *dg_lockstep_least(uint64_t ran)
{
	struct dg_rthread *found = NULL;

	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);
		struct dg_hunt_thread *x = dg_hunt_of(t);

		if (t == dg_me || !dg_hunt_ready(t))
			continue;
		if (!x->preempted && x->begun)
			x->ran = ran + dg_turns_draw(DG_LOCKSTEP_WAKES, DG_LOCKSTEP_WAKES_OCTAVES);
		else if (!x->preempted)
			dg_lockstep_gather(ran);
		x->preempted = true;
		if (!found || x->ran < dg_hunt_of(found)->ran)
			found = t;
	}
	return found;
}

/* Whether the calling thread's turn is over, as it is too far ahead. */
static bool dg_lockstep_due(void)
{
	const struct dg_rthread *t;
	uint64_t ran;

	if (dg_live == 1 || !dg_lockstep_on())
		return false;
	dg_turns_tick();
	ran = dg_hunt_of(dg_me)->ran + dg_turns_since();
	t = dg_lockstep_least(ran);
	if (!t || ran <= dg_hunt_of(t)->ran + dg_lockstep_slack)
		return false;
	dg_lockstep_left--;
	return true;
}

/* The calling thread's turn is over: who is next; 0: no thread is ready. One that gave its turn up before it was ahead has waited until it
 * would have been. */
static uint32_t dg_lockstep_next(const struct dg_rthread *me)
{
	struct dg_hunt_thread *x = dg_hunt_of(me);
	uint64_t ran = x->ran + dg_turns_since();
	const struct dg_rthread *t = dg_lockstep_least(ran);

	if (!t)
		return dg_hunt_ready(me) ? me->index : 0;
	if (ran < dg_hunt_of(t)->ran)
		x->ran += dg_hunt_of(t)->ran - ran;
	return t->index;
}

/* For how many ns a thread, whose turn begins, has run less than the next one of those that are ready. */
static uint64_t dg_lockstep_behind(const struct dg_rthread *t)
{
	uint64_t ran = dg_hunt_of(t)->ran, least = UINT64_MAX;

	dg_hunt_of(dg_me)->preempted = dg_hunt_ready(dg_me);
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_hunt_thread *x = &dg_hunt_threads[i];

		if (i != t->index && x->preempted && dg_hunt_ready(dg_rthread_number(i)) && x->ran < least)
			least = x->ran;
	}
	return least == UINT64_MAX || least < ran ? 0 : least - ran;
}

/* The length of a thread's turn that begins, if neither an event nor a point ends it. */
static uint64_t dg_lockstep_length(const struct dg_rthread *t)
{
	if (!dg_hunt_below(DG_LOCKSTEP_WHILE))
		dg_lockstep_octaves = DG_LOCKSTEP_OCTAVES * (2 + dg_hunt_below(DG_LOCKSTEP_SCALES - 1));
	dg_lockstep_slack = dg_hunt_below(DG_LOCKSTEP_BLIND) ? dg_turns_draw(DG_LOCKSTEP_SLACK, dg_lockstep_octaves) : DG_TURN_MOST;
	return dg_least(dg_lockstep_behind(t) + dg_turns_draw(dg_turns_part(DG_LOCKSTEP_PART), DG_LOCKSTEP_PART_OCTAVES), DG_TURN_MOST);
}

/* Whether the calling thread is in a turn whose time counts here. The clock is set then. */
static bool dg_lockstep_clocks(void)
{
	if (!dg_lockstep_on() || dg_turns_armed != dg_me->index)
		return false;
	dg_turns_tick();
	return true;
}

/* The calling thread enters the engine, at a point or for an operation of threads, and leaves it again. Neither takes it any time. */
static void dg_lockstep_enters(void)
{
	uint64_t ran;

	if (!dg_lockstep_clocks())
		return;
	ran = dg_turns_since();
	dg_lockstep_cost = dg_least(dg_lockstep_cost, ran);
	dg_hunt_of(dg_me)->ran += ran - dg_lockstep_cost;
	dg_turns_ran += ran;
	dg_turns_began = DG_HUNT->clock;
}

static void dg_lockstep_leaves(void)
{
	if (!dg_lockstep_clocks())
		return;
	dg_turns_ran += dg_turns_since();
	dg_turns_began = DG_HUNT->clock;
}

/* The calling thread has created another one, which took longer than it does without a recorder. */
static void dg_lockstep_created(void)
{
	if (dg_lockstep_clocks() && dg_turns_since() > DG_LOCKSTEP_CREATION)
		dg_turns_began = DG_HUNT->clock - DG_LOCKSTEP_CREATION;
}

/* The same, of the system call that it entered the engine for. */
static void dg_lockstep_called(void)
{
	uint64_t ours;

	if (!dg_lockstep_clocks() || dg_turns_since() <= DG_LOCKSTEP_CALL)
		return;
	ours = dg_least(dg_turns_since() - DG_LOCKSTEP_CALL, DG_LOCKSTEP_CALL_OURS);
	dg_turns_ran += ours;
	dg_turns_began += ours;
}
