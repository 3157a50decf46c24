/* What a hunt keeps of each thread, and which threads are ready. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/wait.h"
#include "engine/sync.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <time.h>

#define DG_HUNT_NEVER UINT64_MAX
#define DG_HUNT_STEP_NS 100u    /* what a step takes */
#define DG_HUNT_LOOK_NS 1000u   /* what it takes to look at a clock */
#define DG_HUNT_YIELD_NS 20000u /* what it takes to try again in vain */
#define DG_HUNT_VAIN 3u         /* after so many, others go first */
#define DG_HUNT_LOOKS 20u       /* the same of clocks */
#define DG_HUNT_STREAK 5000u    /* steps of one thread, or of several in turn, while another is ready */
#define DG_HUNT_LOOK_FROM 8u    /* of them, where is looked whether it spins: the first time, then eight times as far on each */
#define DG_HUNT_SPIN_LOOKS 6u   /* points in a row that are looked at */
#define DG_HUNT_GRACE_MS 20     /* of real time, for what comes from outside before a time is up */

struct dg_probe;
struct dg_call;

struct dg_hunt_thread {
	struct dg_wait wait;
	uint64_t deadline; /* if wait.timed */
	const struct dg_probe *probe; /* what DG_WAIT_INPUT waits for; on the thread's engine stack */
	bool brief;        /* the wait is a sleep that may be over at once */
	bool deaf;         /* signals do not end the wait */
	bool leaves;       /* turns: is about to make a call that may wait, */
	const struct dg_call *call; /* which is this one */
	bool away;         /* in a call that the kernel alone ends */
	bool back;         /* and out of it */
	bool unseen;       /* when it last gave the right away it was in libc's code, of which a replay has nothing */
	bool timed;        /* turns: it has a timer, */
	int32_t timer;     /* which is this one of the kernel's */
	uint64_t ran;      /* ns; where it waited, as many as the thread before it */
	bool preempted;    /* it was ready when its last turn ended */
	bool begun;        /* turns: it has run */
	uint32_t keeps;    /* turns: it keeps the right for so many events more */
	bool held;         /* its signals wait until it enters the engine again */
	uint32_t vain;     /* tries in a row */
	uint32_t looks;    /* at the clock */
	uint64_t streak;   /* steps in a row */
	uint64_t steps;
	uint64_t ready_at; /* the step of any thread at which this one was ready, and has not run since; 0: none */
	uint64_t due;      /* the step at which the strategy has a say */
	uint64_t looked[DG_HUNT_SPIN_LOOKS]; /* its states at the last points */
	uint32_t looked_at;
	uint64_t spun; /* turns: its state where it spun last */
	uint32_t spins_on; /* turns: it may spin still; it is looked at so many points, one after the other */
	bool spins;
	uint64_t ordinal;  /* of its last event, */
	uint64_t since;    /* and points that the code calls that it has reached since */
	int64_t priority;
	bool ranked;
	uint32_t plan, plan_end; /* its decisions of the plan that are still to come */
	bool planned;
};

static struct dg_hunt_thread dg_hunt_threads[DG_RTHREADS];
static uint32_t dg_hunt_waiting_outside; /* threads with a probe */

static struct dg_hunt_thread *dg_hunt_of(const struct dg_rthread *t)
{
	return &dg_hunt_threads[t->index % DG_RTHREADS];
}

static const struct dg_wait *dg_hunt_wait_of(const struct dg_rthread *t)
{
	return &dg_hunt_of(t)->wait;
}

static uint64_t dg_hunt_ns(const struct timespec *t)
{
	if (t->tv_sec < 0)
		return 0;
	if ((uint64_t)t->tv_sec >= UINT64_MAX / 4000000000u)
		return UINT64_MAX / 4;
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static bool dg_hunt_ready(const struct dg_rthread *t)
{
	const struct dg_hunt_thread *x = dg_hunt_of(t);

	if (!dg_wait_stands(t))
		return false;
	if (x->away)
		return __atomic_load_n(&x->back, __ATOMIC_SEQ_CST);
	if (t->pending && x->wait.how != DG_WAIT_NOTHING && !x->deaf)
		return true;
	if (x->wait.timed && x->deadline <= DG_HUNT->clock)
		return true;
	return dg_wait_over(&x->wait);
}
