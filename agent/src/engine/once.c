/* Initialisation that one thread does: pthread_once, and the guards of C++'s
 * static variables. The thread that runs the initialiser has an event. That it was found
 * done is none, for compilers test a guard themselves, unseen: so a
 * replay that finds it not done, in a thread whose log does not say that it runs
 * it, lets others continue until it is.
 *
 * Where one thread runs at a time, in a hunt or in turns, a replay's thread finds what the recorded one found. A thread that comes
 * here may give the right to run away, and what it does after it must come after what others did meanwhile: so there
 * the end of each such wait is an event. */
#include "engine/engine.h"
#include "engine/sync.h"

struct dg_once {
	uint32_t *word;
	uint32_t runs; /* value while the initialiser runs */
	bool guard;
};

static bool dg_once_is_done(const struct dg_once *o, uint32_t value)
{
	return o->guard ? value & DG_GUARD_DONE : value == DG_ONCE_DONE;
}

static bool dg_once_done(const struct dg_once *o)
{
	return dg_once_is_done(o, __atomic_load_n(o->word, __ATOMIC_ACQUIRE));
}

static int dg_once_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_once *o = variable;

	(void)tid;
	*word = o->word;
	*value = o->runs;
	return __atomic_load_n(o->word, __ATOMIC_ACQUIRE) == o->runs ? DG_MUST_WAIT : DG_TAKEN;
}

static void dg_once_record(struct dg_frame *f, struct dg_once *o, enum dg_kind kind)
{
	uint32_t seen;
	int result;

	for (;;) {
		f->rax = 0;
		seen = __atomic_load_n(o->word, __ATOMIC_ACQUIRE);
		if (dg_once_is_done(o, seen)) {
			if (dg_hunting())
				dg_sync_write(kind, o->word, f->rdx, DG_SYNC_FOUND, 0, 0);
			return;
		}
		if (seen != o->runs &&
		    __atomic_compare_exchange_n(o->word, &seen, o->runs, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			break;
		result = dg_acquire(dg_once_attempt, o, dg_me->tid, NULL);
		if (result) {
			dg_sync_wrote(f, kind, o->word, f->rdx, DG_SYNC_INIT, result);
			return;
		}
	}
	dg_sync_write(kind, o->word, f->rdx, DG_SYNC_INIT, 0, 0);
	f->rax = 1;
}

static void dg_once_replay(struct dg_frame *f, struct dg_once *o, enum dg_kind kind)
{
	const struct dg_event *e = dg_event_hard();
	bool next = e && e->kind == kind && e->object == (uint64_t)o->word;

	f->rax = 0;
	if (next && e->args && dg_logged_args(e)[0] == DG_SYNC_FOUND) {
		e = dg_sync_did(f, kind, o->word, f->rdx, DG_SYNC_FOUND);
		if (e)
			dg_sync_expect(dg_once_done(o), e, 0, *o->word);
		return;
	}
	if (dg_once_done(o))
		return;
	if (!next) {
		while (!dg_once_done(o))
			dg_turn_yield(kind, (uint64_t)o->word);
		return;
	}
	if (dg_sync_await(kind, o->word))
		while (*o->word == o->runs && dg_turn_catch_up(0))
			;
	e = dg_sync_did(f, kind, o->word, f->rdx, DG_SYNC_INIT);
	if (!e)
		return;
	dg_sync_expect(*o->word != o->runs && !dg_once_done(o), e, 0, *o->word);
	*o->word = o->runs;
	f->rax = 1;
}

/* Arguments: the variable, the site. Result: whether this thread is to initialise. */
static void dg_op_once(struct dg_frame *f)
{
	struct dg_once o = { .word = (uint32_t *)f->rsi, .runs = DG_ONCE_RUNS | DG_SYNC_TABLE->fork_generation };

	(dg_sync_recording() ? dg_once_record : dg_once_replay)(f, &o, DG_EV_ONCE);
}

static void dg_op_guard(struct dg_frame *f)
{
	struct dg_once o = { .word = (uint32_t *)f->rsi, .runs = DG_GUARD_RUNS, .guard = true };

	(dg_sync_recording() ? dg_once_record : dg_once_replay)(f, &o, DG_EV_GUARD);
}
