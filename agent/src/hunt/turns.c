/* A recording whose threads take turns: one runs at a time, as in a hunt, but clocks, waits and
 * random bytes are real. So races are in the recording whose window has no event.
 *
 * A turn has a random length, at whose end a timer's signal stops the thread for the tracer. Of half of the
 * turns it sets turn_over, and the next event ends it; where none comes, and at the end of the other half,
 * it sends the thread to dg_turns_here from whatever instruction it is at. The engine writes down the state:
 * registers, the live stack, and the memory that the program can have written. From equal state the
 * run continues equally, so a replay preempts the thread at the first equal one.
 *
 * A thread in a call that the kernel ends is away, and has the right to run again when the call's event
 * is written. So of what the kernel writes meanwhile a state has nothing. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/thread.h"
#include "syscall.h"

#include <linux/futex.h>
#include <signal.h>
#include <time.h>

#define DG_TURN_LEAST 50000ull     /* ns */
#define DG_TURN_MOST 20000000ull
#define DG_TURN_OCTAVES 9u         /* of lengths: as many are short as long */
/* Until the threads have run for 40 ms, most turns have between this part and a half of the time that they ran: what races in a
 * program that is over in a millisecond, or right after its start, is as short. A turn is longer by as much as its thread has run
 * less than the one before it, so that threads come about as far as they would on processors of their own. */
#define DG_TURN_YOUNG_MOST (DG_TURN_MOST << 1)
#define DG_TURN_YOUNG_LEAST 20000ull
#define DG_TURN_YOUNG_PART 32u
#define DG_TURN_YOUNG_OCTAVES 4u

static uint32_t dg_turns_bell; /* changes when a thread may have become ready */

static uint64_t dg_turns_now(void)
{
	int (*clock)(uint64_t, struct timespec *) = (int (*)(uint64_t, struct timespec *))DG_CONTROL->clock_pc;
	struct timespec now = { 0, 0 };

	if (clock && !__atomic_load_n(&dg_counter_traps, __ATOMIC_ACQUIRE))
		clock(CLOCK_MONOTONIC, &now);
	else
		dg_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock of waits. A hunt's stands until something happens. */
static void dg_turns_tick(void)
{
	if (dg_by_turns)
		DG_HUNT->clock = dg_turns_now();
}

/* ---- the end of a turn, by time ---- */

#define DG_TURN_AGAIN 200000u /* ns to the next try, where a thread is where a turn cannot end or has reached no event */
#define DG_TURN_DOUBLED 6u    /* so many times at most: dg_turns_later */
#define DG_TURN_KEEPS 2u      /* the call that unmaps the stack, and the next one */

static uint32_t dg_turns_armed; /* the thread whose timer runs; 0: none */
static uint64_t dg_turns_began; /* when its turn did */

/* Each thread has a timer: its signal must not disturb another in a call. */
static bool dg_turns_timer(struct dg_rthread *t)
{
	struct dg_hunt_thread *x = dg_hunt_of(t);
	struct sigevent event = { .sigev_signo = DG_TURN_SIGNAL, .sigev_notify = SIGEV_THREAD_ID, .sigev_value = { .sival_int = DG_TURN_VALUE } };

	if (x->timed)
		return true;
	if (!t->real_tid)
		return false; /* it does so itself when it starts */
	event._sigev_un._tid = (int32_t)t->real_tid;
	x->timed = !dg_sys3(SYS_timer_create, CLOCK_MONOTONIC, &event, &x->timer);
	return x->timed;
}

static void dg_turns_set(struct dg_rthread *t, uint64_t ns)
{
	uint64_t again = ns < DG_TURN_LEAST ? DG_TURN_LEAST : DG_TURN_AGAIN;
	struct itimerspec times = { { 0, ns ? (int64_t)again : 0 }, { (int64_t)(ns / 1000000000u), (int64_t)(ns % 1000000000u) } };

	dg_sys4(SYS_timer_settime, dg_hunt_of(t)->timer, 0, &times, 0);
}

/* The turn cannot end where the thread is, which the tracer had sent here. It runs for so many ns before the next try, and for longer each
 * time: if the way here takes longer than the timer's period, it would not reach its next instruction. */
static void dg_turns_later(struct dg_rthread *t, uint64_t ns)
{
	static uint64_t turn, tries;
	uint64_t least;

	if (turn != DG_HUNT->turn) {
		turn = DG_HUNT->turn;
		tries = 0;
	}
	least = (uint64_t)DG_TURN_AGAIN << dg_least(tries++, DG_TURN_DOUBLED);
	if (ns < least)
		ns = least;
	DG_HUNT->turn_over = 1;
	DG_HUNT->turn_length += ns;
	dg_turns_set(t, ns);
}

static void dg_turns_disarm(void)
{
	if (dg_turns_armed)
		dg_turns_set(dg_rthread_number(dg_turns_armed), 0);
	dg_turns_armed = 0;
}

static void dg_turns_arm(struct dg_rthread *t)
{
	if (dg_turns_armed && dg_turns_armed != t->index)
		dg_turns_disarm();
	if (dg_live == 1 || !dg_turns_timer(t))
		return;
	dg_turns_armed = t->index;
	dg_turns_tick();
	dg_turns_began = DG_HUNT->clock;
	dg_turns_set(t, DG_HUNT->turn_length);
}

static void dg_turns_timer_end(struct dg_rthread *t)
{
	struct dg_hunt_thread *x = dg_hunt_of(t);

	if (dg_turns_armed == t->index)
		dg_turns_armed = 0;
	if (x->timed)
		dg_sys1(SYS_timer_delete, x->timer);
	x->timed = false;
}

/* ns of the turn so far; where an instruction ends it, without what that takes. */
static uint64_t dg_turns_since(void)
{
	uint64_t most = DG_HUNT->turn_exact ? DG_HUNT->turn_length : UINT64_MAX;

	return dg_turns_armed ? dg_least(DG_HUNT->clock - dg_turns_began, most) : 0;
}

static uint64_t dg_turns_ran; /* ns that turns took, without what it takes to end them */

static bool dg_turns_young(void)
{
	return dg_turns_ran < DG_TURN_YOUNG_MOST;
}

/* How much less a thread has run than the calling one, as far as both could run; ns. */
static uint64_t dg_turns_behind(struct dg_rthread *t)
{
	struct dg_hunt_thread *me = dg_hunt_of(dg_me), *x = dg_hunt_of(t);

	me->preempted = dg_hunt_ready(dg_me);
	if (me->preempted && x->preempted)
		return me->ran > x->ran ? me->ran - x->ran : 0;
	x->ran = me->ran;
	return 0;
}

/* A random length of at least so much, up to so many times twice that. */
static uint64_t dg_turns_draw(uint64_t least, uint64_t octaves)
{
	least <<= dg_hunt_below(octaves);
	return least + dg_hunt_below(least);
}

/* This part of the time that the young threads ran. */
static uint64_t dg_turns_part(uint64_t part)
{
	uint64_t ns = dg_turns_ran / part;

	return ns < DG_TURN_YOUNG_LEAST ? DG_TURN_YOUNG_LEAST : ns;
}

static uint64_t dg_turns_length(struct dg_rthread *t)
{
	uint64_t least = DG_TURN_LEAST, octaves = DG_TURN_OCTAVES, behind;

	if (dg_lockstep_on())
		return dg_lockstep_length(t);
	behind = dg_turns_behind(t);
	if (dg_turns_young() && dg_hunt_below(8)) {
		least = dg_turns_part(DG_TURN_YOUNG_PART);
		octaves = DG_TURN_YOUNG_OCTAVES;
	} else {
		behind = 0;
	}
	return dg_least(behind + dg_turns_draw(least, octaves), DG_TURN_MOST);
}

/* ---- the end of a turn at an access to a variable ---- */

/* Young threads have points where the program's own code names a variable (hunt/site.c), and older ones as long as some of them spin. Half
 * of their turns end after a number of these, which grows with those that there were, but not far: a replay stops at each. A thread that
 * spins on a variable waits for another one, and gives its turn up. */
#define DG_TURN_POINTS_LOOK 127u /* after so many it is looked whether the thread spins: no multiple of a loop's number of points */
#define DG_TURN_POINTS_FEW 64u
#define DG_TURN_POINTS_PART 4u
#define DG_TURN_POINTS_OCTAVES 14u
#define DG_TURN_POINTS_AGAIN 16u /* where a turn cannot end */
#define DG_TURN_POINTS_SPINS_ON 16u /* a thread whose turn ended as it spun is looked at as many times first: what it waits for next may not be there either */
#define DG_TURN_POINTS_SPUN 16u  /* turns that ended as the thread spun while the threads ran for 40 ms, for there to be points for as long again */

static uint64_t dg_turns_points = UINT64_MAX; /* that the turn may still reach; UINT64_MAX: any number */
static uint64_t dg_turns_points_all; /* of all turns so far */
static uint64_t dg_turns_idle_spins; /* turns in a row that ended as the thread spun, as it did before; no event, and no end by time, between */

static uint64_t dg_turns_points_until = DG_TURN_YOUNG_MOST; /* dg_turns_ran */
static uint64_t dg_turns_spun; /* turns since it was set that ended as the thread spun */

static void dg_turns_points_begin(void)
{
	uint64_t most = dg_turns_points_all / DG_TURN_POINTS_PART, octaves = 1;

	if (dg_turns_fine && dg_turns_ran >= dg_turns_points_until) {
		dg_turns_points_until = dg_turns_ran + DG_TURN_YOUNG_MOST;
		dg_turns_fine = dg_turns_spun >= DG_TURN_POINTS_SPUN;
		dg_turns_spun = 0;
		if (!dg_turns_fine)
			dg_point_restore();
	}
	dg_turns_points = UINT64_MAX;
	if (!dg_turns_fine || dg_lockstep_on() || dg_hunt_below(2))
		return;
	if (most < DG_TURN_POINTS_FEW)
		most = DG_TURN_POINTS_FEW;
	while (most >> octaves)
		octaves++;
	octaves = dg_hunt_below(octaves);
	if (octaves >= DG_TURN_POINTS_OCTAVES)
		return;
	most = 1ull << octaves;
	dg_turns_points = most + dg_hunt_below(most);
}

static uint64_t dg_turns_look = DG_TURN_POINTS_LOOK; /* points until the thread is looked at */

static void dg_turns_points_passed(uint64_t passed)
{
	dg_turns_points_all += passed;
	dg_turns_look -= dg_least(passed, dg_turns_look);
	if (dg_turns_points != UINT64_MAX)
		dg_turns_points -= dg_least(passed, dg_turns_points);
}

/* How many points the thread may reach before it is looked at. */
static uint64_t dg_turns_stretch(void)
{
	if (!dg_turns_points)
		dg_turns_points = DG_TURN_POINTS_AGAIN;
	return dg_lockstep_on() || dg_hunt_of(dg_me)->spins_on ? 1 : dg_least(dg_turns_points, DG_TURN_POINTS_LOOK);
}

/* Whether to look if the thread spins. */
static bool dg_turns_looks(void)
{
	if (dg_lockstep_on() && dg_turns_look && !dg_hunt_of(dg_me)->spins_on)
		return false;
	dg_turns_look = DG_TURN_POINTS_LOOK;
	return true;
}

/* Another thread sets its timer when it runs, so the time that it takes to wake is no part of its turn. */
static void dg_turns_begin(struct dg_rthread *t)
{
	struct dg_hunt *h = DG_HUNT;

	uint64_t ran = dg_turns_since();

	dg_turns_ran += ran;
	dg_hunt_of(dg_me)->ran += ran;
	dg_turns_points_begin();
	h->turn_length = dg_turns_length(t);
	/* Where no other thread can run, there is nothing to find. */
	if (h->turn_alone)
		h->turn_length = dg_least(h->turn_length << dg_least(h->turn_alone, 8), DG_TURN_MOST);
	h->turn_exact = (uint32_t)dg_hunt_below(2);
	h->turn_over = 0;
	h->turn++;
	if (t == dg_me)
		dg_turns_arm(t);
	else
		dg_turns_disarm();
}

static void dg_turns_anew(void)
{
	if (!dg_by_turns)
		return;
	dg_turns_tick();
	dg_turns_begin(dg_me);
}

static void dg_turns_more(void)
{
	if (dg_by_turns && dg_live == 2 && dg_turns_young()) {
		dg_turns_fine = true;
		dg_point_sites();
	}
	dg_turns_anew();
}

/* The thread whose turn is after the calling one's; 0: none is ready. */
static uint32_t dg_turns_after(const struct dg_rthread *me)
{
	dg_hunt_collect();
	return dg_lockstep_on() ? dg_lockstep_next(me) : dg_hunt_behind(me);
}

/* NULL: no thread is ready. A thread that gives way has the right again after all others. */
static struct dg_rthread *dg_turns_decide(const struct dg_rthread *me, bool yields)
{
	bool over = yields || DG_HUNT->turn_over;
	uint32_t next = me->index;

	if (over || !dg_hunt_ready(me))
		next = dg_turns_after(me);
	if (!next)
		return NULL;
	DG_HUNT->steps++;
	if (over || next != me->index) {
		DG_HUNT->turn_alone = next == me->index ? DG_HUNT->turn_alone + 1 : 0;
		dg_turns_begin(dg_rthread_number(next));
	}
	return dg_rthread_number(next);
}

/* ---- one processor ---- */

static uint64_t dg_hunt_processors[DG_TURN_PROCESSORS / 64]; /* that the program was given */
static bool dg_turns_pinned;

/* From its second thread on, a process has one processor: to wake a thread on another takes much longer. The
 * program is told of those that it was given. */
static void dg_turns_pin(void)
{
	uint64_t one[DG_TURN_PROCESSORS / 64] = { 0 };
	uint32_t processor = 0, node = 0;

	if (dg_turns_pinned || dg_live > 1 || dg_sys3(SYS_getcpu, &processor, &node, 0) || processor >= DG_TURN_PROCESSORS)
		return;
	if (dg_sys3(SYS_sched_getaffinity, 0, sizeof(dg_hunt_processors), dg_hunt_processors) < 0)
		return;
	one[processor / 64] = 1ull << processor % 64;
	dg_turns_pinned = !dg_sys3(SYS_sched_setaffinity, 0, sizeof(one), one);
	if (dg_turns_pinned)
		DG_HUNT->processor = (int32_t)processor;
	dg_turn_start();
}

static void dg_turns_start(void)
{
	struct dg_action action = { .handler = (uint64_t)dg_on_signal, .flags = SA_RESTART };

	action = dg_kernel_action(DG_TURN_SIGNAL, &action);
	dg_sys4(SYS_rt_sigaction, DG_TURN_SIGNAL, &action, 0, 8);
	dg_turn_start();
	dg_hunt_seed();
	dg_lockstep_start();
	dg_turns_anew();
}

/* A fork's child has one thread, and none of its parent's timers. */
static void dg_turns_forked(void)
{
	dg_turns_armed = 0;
	if (dg_turns_pinned)
		dg_sys3(SYS_sched_setaffinity, 0, sizeof(dg_hunt_processors), dg_hunt_processors);
	dg_turns_pinned = false;
	DG_HUNT->processor = -1;
	dg_turn_start();
	dg_turns_anew();
}

/* ---- no thread is ready ---- */

static bool dg_hunt_any_ready(void);
static struct dg_rthread *dg_hunt_earliest(void);

static void dg_turns_ring(void)
{
	if (!dg_by_turns)
		return;
	__atomic_store_n(&dg_turns_bell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&DG_HUNT->turn_idle, __ATOMIC_SEQ_CST))
		dg_sys3(SYS_futex, &dg_turns_bell, FUTEX_WAKE_PRIVATE, 1);
}

/* Until one is, or may be. A program whose threads wait for each other hangs, as it does by itself. */
static void dg_turns_idle(void)
{
	const struct dg_rthread *t = dg_hunt_earliest();
	struct timespec left;
	uint64_t ns = 0;

	dg_turns_disarm();
	DG_HUNT->turn_over = 1; /* who is ready next begins a turn */
	__atomic_store_n(&DG_HUNT->turn_idle, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&dg_turns_bell, 0, __ATOMIC_SEQ_CST);
	dg_turns_tick();
	if (t && dg_hunt_of(t)->deadline > DG_HUNT->clock)
		ns = dg_hunt_of(t)->deadline - DG_HUNT->clock;
	if (!dg_hunt_any_ready()) {
		left = (struct timespec){ (int64_t)(ns / 1000000000u), (int64_t)(ns % 1000000000u) };
		dg_sys4(SYS_futex, &dg_turns_bell, FUTEX_WAIT_PRIVATE, 0, t ? &left : NULL);
	}
	__atomic_store_n(&DG_HUNT->turn_idle, 0, __ATOMIC_SEQ_CST);
	dg_turns_tick();
}

/* A child of vfork has ended that wrote to memory of which the log has nothing: its stack, which libc unmaps right after. No state would be
 * found again before that. A thread that makes no call after it keeps the right for as many tries to end its turn. */
static void dg_turns_borrowed(void)
{
	if (dg_by_turns)
		dg_hunt_of(dg_me)->keeps = DG_TURN_KEEPS;
}

static void dg_turns_keep_less(const struct dg_rthread *t)
{
	struct dg_hunt_thread *x = dg_hunt_of(t);

	if (x->keeps)
		x->keeps--;
}

static bool dg_turns_may_end(const struct dg_rthread *t)
{
	return dg_turn_may_end() && !dg_hunt_of(t)->keeps;
}

/* ---- events ---- */

static void dg_hunt_lend(struct dg_rthread *me, const struct dg_rthread *to);
static struct dg_rthread *dg_hunt_next(struct dg_rthread *me, bool yields);

static void dg_turns_arrive(enum dg_kind kind, uint64_t object)
{
	struct dg_rthread *me = dg_me;
	struct dg_hunt_thread *x = dg_hunt_of(me);
	bool yields = x->vain >= DG_HUNT_VAIN, over;

	me->waits_for = kind;
	me->waits_object = object;
	dg_turns_keep_less(me);
	dg_turns_idle_spins = 0;
	if (yields)
		x->vain = 0;
	if (dg_lockstep_due())
		DG_HUNT->turn_over = 1;
	over = __atomic_load_n(&DG_HUNT->turn_over, __ATOMIC_RELAXED) && dg_turns_may_end(me);
	if (dg_live > 1 && (yields || over || !dg_hunt_ready(me))) {
		do
			dg_hunt_lend(me, dg_hunt_next(me, yields));
		while (!dg_hunt_ready(me));
	}
	x->wait = (struct dg_wait){ .how = DG_WAIT_NOTHING };
}

/* ---- the deadlines of waits, on CLOCK_MONOTONIC ---- */

static uint64_t dg_turns_deadline(uint64_t ns, int clock)
{
	struct timespec now = { 0, 0 };
	uint64_t passed;

	if (clock == CLOCK_MONOTONIC)
		return ns;
	dg_sys2(SYS_clock_gettime, clock, &now);
	passed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	dg_turns_tick();
	return DG_HUNT->clock + (ns > passed ? ns - passed : 0);
}
