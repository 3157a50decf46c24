/* A replay that may diverge from the recording: an experiment. As long as the process
 * does what the log says it is a replay like any other. Where it does otherwise,
 * or a thread that is due cannot continue, the process is free from there on:
 *  - the operation that found it out is made once more, from its start, by
 *    engine/free_sync.c and engine/free_call.c; so is that of every
 *    thread that waits for its turn, when it gets the right to run;
 *  - locks and the like are what the variables say, and who cannot have one waits
 *    here, giving the right to run away;
 *  - the log is what inputs come from, and the schedule says who goes first:
 *    engine/free_log.c.
 * One thread runs at a time, and which thread runs next follows from the operations before, so
 * the same experiment has the same end each time. Nothing asks the kernel for
 * anything that it does not do to the process itself. */
#include "engine/free.h"
#include "engine/table.h"
#include "engine/wait.h"
#include "engine/sync.h"
#include "syscall.h"
#include "engine/thread.h"

#include <sys/mman.h>

#define DG_FREE_SENT 8u

struct dg_free_thread {
	/* The operation that it is in, to be made again. */
	struct dg_frame entry;
	dg_operation *run;
	uint64_t ordinal, next, carried; /* of before it */
	uint32_t cloning;
	bool guarded; /* these are set */
	bool starts;  /* and its first event is still to come */
	bool aware;   /* the operation began when the process was free */
	bool parked;
	/* The schedule's run with its next event, where to look for the one after, and
	 * how many of its events there are up to the run's end. */
	uint64_t run_at, run_next, run_end;
	uint64_t past;      /* events after its log */
	uint64_t seldom;    /* lowest first: how often it gave the right away for nothing */
	uint64_t alone;     /* events that are not in the log, since another thread ran */
	uint64_t last_far, streak;
	struct dg_wait wait;
	uint32_t sequence; /* dg_free_waits */
	/* Signals that it is to get on leaving the engine: an event of the log, then
	 * those that the process sent. */
	uint64_t late;
	uint64_t raised; /* the first signal passed that the controller raises */
	const struct dg_event *delivers;
	uint32_t sent[DG_FREE_SENT], sents;
	/* The event that dg_free_await found, or made up. */
	const struct dg_event *found;
	uint32_t passed; /* events before it */
	bool far;        /* those stay */
	struct {
		struct dg_event event;
		uint64_t args[5];
	} made;
};

static struct dg_free_thread dg_free_threads[DG_RTHREADS];

static struct dg_free_thread *dg_free_of(const struct dg_rthread *t)
{
	return &dg_free_threads[t->index % DG_RTHREADS];
}

/* ---- made again ---- */

static void dg_free_entered(struct dg_frame *f, dg_operation *run)
{
	struct dg_free_thread *x = dg_free_of(dg_me);

	x->entry = *f;
	x->run = run;
	x->ordinal = dg_me->ordinal;
	x->next = dg_me->next;
	x->carried = dg_me->carried;
	x->cloning = dg_me->cloning;
	x->aware = dg_free();
	x->starts = dg_me->state == DG_R_STARTING;
	x->guarded = true;
}

static void dg_free_left(void)
{
	dg_free_of(dg_me)->guarded = false;
}

/* engine/entry.S leaves by what the thread and its frame say, and keeps nothing in
 * registers. */
extern const char dg_exit_check[] DG_HIDDEN;

__attribute__((noreturn)) static void dg_free_again(void)
{
	struct dg_rthread *me = dg_me;
	struct dg_free_thread *x = dg_free_of(me);
	struct dg_frame *f = (struct dg_frame *)me->inside;

	*f = x->entry;
	DG_CONTROL->consumed -= me->ordinal - x->ordinal;
	me->ordinal = x->ordinal;
	me->next = x->next;
	me->carried = x->carried;
	me->cloning = x->cloning;
	me->pending = 0;
	me->fresh = 0;
	me->yields = 0;
	x->wait.how = DG_WAIT_NOTHING;
	__atomic_store_n(&me->state, x->starts ? DG_R_STARTING : DG_R_RUNNING, __ATOMIC_RELAXED);
	__asm__ volatile("movq %0, %%rsp\n\t"
			 "movq %0, %%rdi\n\t"
			 "call *%1\n\t"
			 "jmp dg_exit_check"
			 :
			 : "r"(f), "r"(x->run)
			 : "memory", "rdi");
	__builtin_unreachable();
}

/* ---- whose turn it is ---- */

/* The place of the thread's next event in the schedule. One whose log is over
 * would have continued from its last event, and not at the end of all; but whose
 * failure ended the recording, that was the next thing to happen. */
static uint64_t dg_free_place(const struct dg_rthread *t)
{
	const struct dg_run *runs = (const struct dg_run *)DG_IMAGE->runs;
	struct dg_free_thread *x = dg_free_of(t);

	for (; t->ordinal + dg_point_passed[t->index] + x->past >= x->run_end && x->run_next < DG_IMAGE->run_count; x->run_next++)
		if (runs[x->run_next].thread == t->index) {
			x->run_at = x->run_next;
			x->run_end += runs[x->run_next].events;
		}
	if (!x->run_end)
		return UINT64_MAX; /* the recording does not know it */
	if (t->ordinal + dg_point_passed[t->index] + x->past >= x->run_end && t->index == DG_CONTROL->free_first)
		return 0;
	return x->run_at;
}

static bool dg_free_satisfied(const struct dg_free_thread *x)
{
	return x->sents || dg_wait_over(&x->wait);
}

static bool dg_free_before(const struct dg_rthread *a, const struct dg_rthread *b)
{
	if (dg_free_of(a)->seldom != dg_free_of(b)->seldom)
		return dg_free_of(a)->seldom < dg_free_of(b)->seldom;
	return dg_free_place(a) < dg_free_place(b);
}

/* Of those that can continue, or of those that wait for a time: the first by how
 * seldom they got on, the schedule, and their number. */
static struct dg_rthread *dg_free_first(bool timed)
{
	struct dg_rthread *found = NULL;

	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);

		if (!dg_wait_stands(t) || !(timed ? dg_free_of(t)->wait.timed : dg_free_satisfied(dg_free_of(t))))
			continue;
		if (!found || dg_free_before(t, found))
			found = t;
	}
	return found;
}

__attribute__((noreturn)) static void dg_free_ends(enum dg_stuck why)
{
	for (;;) {
		dg_trap(DG_TRAP_STUCK, dg_me->index, why);
		if (!DG_CONTROL->tracer)
			dg_sys1(SYS_exit_group, 255);
	}
}

static const struct dg_wait *dg_free_wait_of(const struct dg_rthread *t)
{
	return &dg_free_of(t)->wait;
}

__attribute__((noreturn)) static void dg_free_stuck(void)
{
	enum dg_stuck why = DG_STUCK_BLOCKED;

	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);

		if (!dg_wait_stands(t))
			continue;
		if (dg_wait_cycle(t, dg_free_wait_of))
			dg_free_ends(DG_STUCK_CYCLE);
		if (dg_free_of(t)->wait.how == DG_WAIT_INPUT)
			why = DG_STUCK_INPUT;
	}
	dg_free_ends(why);
}

/* The thread that runs now. Time passes only while no thread can. */
static struct dg_rthread *dg_free_next(void)
{
	struct dg_rthread *t = dg_free_first(false);

	if (t)
		return t;
	t = dg_free_first(true);
	if (!t)
		dg_free_stuck();
	dg_free_of(t)->wait.expired = true;
	return t;
}

/* Until the calling thread is the one. A new one comes here without having the
 * right to look. */
static void dg_free_turn(void)
{
	struct dg_rthread *me = dg_me, *next;

	if (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_ACQUIRE) != me->index) {
		__atomic_store_n(&me->state, DG_R_WAITING, __ATOMIC_SEQ_CST);
		do
			dg_turn_wait(me);
		while (__atomic_load_n(&DG_CONTROL->holder, __ATOMIC_RELAXED) != me->index);
		__atomic_store_n(&me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
	}
	while ((next = dg_free_next()) != me) {
		dg_free_of(me)->alone = 0;
		dg_turn_lend(me, next->index);
	}
}

static enum dg_waited dg_free_wait(enum dg_wait_for wait, const void *word, uint32_t value, bool timed)
{
	struct dg_free_thread *x = dg_free_of(dg_me);
	enum dg_waited how = DG_WAITED;

	x->wait = (struct dg_wait){ .how = wait, .value = value, .word = (uint64_t)word, .timed = timed };
	dg_free_turn();
	if (x->wait.expired)
		how = DG_WAITED_TOO_LONG;
	else if (x->sents)
		how = DG_WAIT_SIGNALLED;
	x->wait = (struct dg_wait){ .how = DG_WAIT_NOTHING };
	return how;
}

#define DG_FREE_ALONE 256u /* events that are not in the log before others get on */
#define DG_FREE_VAIN (DG_FREE_ALONE / 8)

/* A thread that does for long what the log does not have lets others run first, whatever the
 * schedule says; sooner, if it waits for something by trying again and again. */
static void dg_free_alone(struct dg_rthread *me, uint32_t events)
{
	struct dg_free_thread *x = dg_free_of(me);

	x->alone += events;
	if (x->alone <= DG_FREE_ALONE)
		return;
	x->alone = 0;
	x->seldom++;
}

static void dg_free_vain(void)
{
	dg_free_alone(dg_me, DG_FREE_VAIN);
}

/* At once: it cannot continue. */
static void dg_free_yield(void)
{
	dg_free_of(dg_me)->seldom++;
	dg_free_turn();
}

/* Wakes so many threads that wait for the word; returns their number. */
static uint32_t dg_free_wake(uint64_t word, uint64_t most)
{
	uint32_t woken = 0;

	for (; woken < most; woken++) {
		struct dg_rthread *found = NULL;

		for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
			struct dg_rthread *t = dg_rthread_number(i);
			const struct dg_free_thread *x = dg_free_of(t);

			if (x->wait.how == DG_WAIT_WAKE && x->wait.word == word && !x->wait.woken &&
			    (!found || dg_free_before(t, found)))
				found = t;
		}
		if (!found)
			break;
		dg_free_of(found)->wait.woken = true;
	}
	return woken;
}

/* ---- where the process diverges from the recording ---- */

/* Marks of which events were used go into the image. The thread that comes here
 * has the right to run, or no thread has. */
static void dg_free_begin(void)
{
	struct dg_control *c = DG_CONTROL;

	if (dg_free())
		return;
	dg_sys3(SYS_mprotect, DG_ENGINE_IMAGE, (dg_image_size + 4095) & ~4095ull, PROT_READ | PROT_WRITE);
	if (c->free_most)
		c->free_most += c->consumed;
	c->free = DG_FREE_IS;
}

/* Tells the controller, which looks at control.divergence once. */
static void dg_free_tell(void)
{
	dg_trap(DG_TRAP_LEFT, dg_me->index, 0);
}

static void dg_free_note(enum dg_reason reason, const struct dg_event *expected, uint64_t place, uint64_t want, uint64_t got,
			 const struct dg_event *event)
{
	struct dg_divergence *d = &DG_CONTROL->divergence;
	const struct dg_frame *f = (const struct dg_frame *)dg_me->inside;

	if (d->reason != DG_DIFFERS_NONE)
		return;
	*d = (struct dg_divergence){
		.thread = dg_me->index, .reason = reason, .ordinal = dg_me->ordinal + 1, .expected = (uint64_t)expected,
		.pc = f ? f->rip : 0, .sp = f ? f->rsp : 0, .place = place, .want = want, .got = got, .event = *event,
	};
	d->event.args = d->event.payloads = 0;
	dg_free_tell();
}

/* A variable that is not to be had yet, or a thread that is not there: the
 * schedule cannot be followed, and that is all. */
static void dg_free_diverges(enum dg_reason reason, const struct dg_event *expected, uint64_t place, uint64_t want, uint64_t got,
			     const struct dg_event *event)
{
	bool told;

	if (DG_CONTROL->free != DG_FREE_MAY || !dg_free_of(dg_me)->guarded || reason == DG_DIFFERS_LOG)
		return;
	told = reason == DG_DIFFERS_STATE || reason == DG_DIFFERS_THREAD;
	dg_free_begin();
	if (told)
		dg_free_tell();
	else
		dg_free_note(reason, expected, place, want, got, event);
	dg_turn_to(dg_me->index);
	dg_free_again();
}

static void dg_free_expect(bool so, const struct dg_event *e)
{
	if (!so && DG_CONTROL->free == DG_FREE_MAY && DG_CONTROL->free_order)
		dg_diverge(DG_DIFFERS_STATE, e, 0, 0, 0);
}

static void dg_free_resume(void)
{
	const struct dg_free_thread *x;

	if (!dg_free() || DG_CONTROL->holder != dg_me->index)
		return;
	x = dg_free_of(dg_me);
	if (x->guarded && !x->aware && !x->parked)
		dg_free_again();
}

/* dg_turn_give's, and to the calling thread as well. */
static void dg_free_right_to(struct dg_rthread *t)
{
	if (t != dg_me) {
		dg_turn_give(t->index);
		return;
	}
	dg_turn_to(t->index);
	__atomic_store_n(&t->go, DG_GO_RUN, __ATOMIC_RELEASE);
}

/* Whether the thread of the schedule's next event can be given the right. */
static bool dg_free_exists(uint32_t index)
{
	const struct dg_rthread *t = dg_rthread_number(index);

	if (index > DG_CONTROL->threads || t->state == DG_R_NONE || t->state == DG_R_ENDED)
		return false;
	return t->state != DG_R_STARTING || dg_wait_cloned(t);
}

static bool dg_free_pass(void)
{
	uint32_t next;

	if (!DG_CONTROL->free || DG_CONTROL->holder != dg_me->index)
		return false;
	if (!dg_free()) {
		next = dg_turn_due();
		if (!next || next == dg_me->index || dg_free_exists(next))
			return false;
		dg_free_begin();
		dg_free_tell();
	}
	dg_free_right_to(dg_free_next());
	return true;
}

static void dg_free_finish(void)
{
	dg_free_begin();
	dg_free_tell();
	dg_free_right_to(dg_free_next());
}

static void dg_free_park(void)
{
	if (DG_CONTROL->free)
		dg_free_of(dg_me)->parked = true;
}

/* The schedule continues after the thread's log, or the process is free and it is
 * the thread's turn. */
static void dg_free_past(void)
{
	struct dg_free_thread *x = dg_free_of(dg_me);
	struct dg_event event = { .kind = (uint8_t)dg_me->waits_for, .object = dg_me->waits_object };

	if (!DG_CONTROL->free)
		return;
	dg_free_begin();
	if (x->parked) {
		x->parked = false;
		dg_free_tell();
		__atomic_store_n(&dg_me->state, DG_R_RUNNING, __ATOMIC_RELAXED);
		dg_trap(DG_TRAP_UNPARK, dg_me->index, 0);
	}
	if (!x->guarded)
		return;
	dg_free_note(DG_DIFFERS_KIND, NULL, 0, 0, 0, &event);
	dg_free_again();
}
