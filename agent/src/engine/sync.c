/* Synchronisation inside the engine: what the operations share, and those that
 * are short. A recording does it and writes the event while it has what it took;
 * a replay waits for the event's turn, when nothing is in the way, and does the
 * same to the variable. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/sync.h"

#include <sys/mman.h>

static void *dg_sync_table_map(void)
{
	return (void *)dg_sys(SYS_mmap, DG_ENGINE_SYNC, (sizeof(struct dg_sync_table) + 4095) & ~4095l,
			      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

bool dg_sync_ours;

/* Called once, before dg_mode is set, as the last thing that can fail. */
static bool dg_sync_start(void)
{
	dg_sync_ours = dg_sync_table_map() == (void *)DG_SYNC_TABLE;
	return dg_sync_ours;
}

/* In a fork's child, where no other thread waits any more. */
static void dg_sync_forked(void)
{
	struct dg_sync_table *t = DG_SYNC_TABLE;

	for (uint32_t i = 0; i < DG_WAIT_COUNTS; i++) {
		t->waiters[i] = 0;
		t->writers[i] = 0;
	}
	t->fork_generation += 4;
}

static long dg_sleep(const void *word, uint32_t expected, const struct dg_until *until)
{
	uint64_t args[6];
	long result;

	if (dg_hunting())
		return dg_hunt_sleep(word, expected, until);
	if (!dg_futex_wait_args(args, word, expected, until))
		return -ETIMEDOUT;
	result = dg_blocking(SYS_futex, args, &dg_me->pending);
	/* The signal came before the thread slept: the same as before the call. */
	if (result == DG_NOT_MADE)
		return -ERESTART;
	/* A signal from outside: a debugger, the freezer. */
	if (result == -EINTR && !dg_interrupted())
		return -EAGAIN;
	return result;
}

/* Or not any more, in a child that continues without a recording. */
static bool dg_sync_recording(void)
{
	return dg_mode != DG_MODE_REPLAY;
}

/* Recording: the calling thread has to wait, or may have to. */
static void dg_sync_waits(bool waits)
{
	if (waits && dg_mode == DG_MODE_RECORD)
		dg_me->arrived = dg_ticket();
}

static void dg_sync_write(enum dg_kind kind, const void *object, uint64_t site, uint64_t how, int64_t result, uint8_t flags)
{
	uint64_t arrived = dg_me->arrived;
	struct dg_event *e;

	if (dg_mode != DG_MODE_RECORD)
		return;
	dg_me->arrived = 0;
	e = dg_event_begin(kind, (uint64_t)object, site, arrived ? 2 : 1, 0);
	if (!e)
		return;
	dg_event_args(e)[0] = how;
	if (arrived) {
		dg_event_args(e)[1] = arrived;
		flags |= DG_EVENT_ARRIVED;
	}
	e->result = result;
	e->flags = flags;
	dg_event_commit(e);
}

static const struct dg_event *dg_sync_read(enum dg_kind kind, const void *object, uint64_t site, uint64_t how)
{
	const struct dg_event *e = dg_event_await(kind, (uint64_t)object);

	dg_event_take(e, kind, (uint64_t)object, site, &how, 1);
	return e;
}

/* A replay's: whether the thread's next event, whose turn it is now, takes the
 * variable. Then what others have to do with it before is done before. */
static bool dg_sync_await(enum dg_kind kind, const void *object)
{
	const struct dg_event *e = dg_event_await(kind, (uint64_t)object);

	return e->kind == kind && e->object == (uint64_t)object && !e->result && !(e->flags & DG_EVENT_INTERRUPTED);
}

/* The end of an operation that may block. True: the call is made again after the
 * signal's handler. */
static bool dg_sync_wrote(struct dg_frame *f, enum dg_kind kind, const void *object, uint64_t site, uint64_t how, int result)
{
	if (result != EINTR && result != ERESTART) {
		dg_sync_write(kind, object, site, how, result, 0);
		f->rax = (uint64_t)(int64_t)result;
		return false;
	}
	dg_sync_write(kind, object, site, how, 0, DG_EVENT_INTERRUPTED);
	dg_again(f);
	return true;
}

/* NULL: the same, in a replay. */
static const struct dg_event *dg_sync_did(struct dg_frame *f, enum dg_kind kind, const void *object, uint64_t site, uint64_t how)
{
	const struct dg_event *e = dg_sync_read(kind, object, site, how);

	if (e->flags & DG_EVENT_INTERRUPTED) {
		dg_again(f);
		return NULL;
	}
	f->rax = (uint64_t)e->result;
	return e;
}

/* What the log says was taken must be there to be taken. */
static void dg_sync_expect(bool possible, const struct dg_event *e, uint64_t want, uint64_t got)
{
	if (!possible)
		dg_diverge(DG_DIFFERS_STATE, e, 0, want, got);
}
