/* Where a turn ends that no event ends: the state that a replay recognises, and the thread's
 * way from the tracer through the engine and back. Memory that a call of another thread's may be
 * writing does not count, for a replay writes it at the call's event. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "engine/thread.h"
#include "layout.h"
#include "syscall.h"

#include <fcntl.h>
#include <time.h>

#define DG_TURN_PATIENCE 50000000ull /* ns of the processor without an event, after which a state that is not all known must do */
#define DG_PLACE_DIGESTED (64ull << 20) /* replay/breakpoint/place.go allows for stacks as well */
#define DG_PLACE_SHARE 10u /* at most one part in so many of the time goes into digests, */
#define DG_PLACE_CREDIT 5000000 /* and ns of it at once: a program that is over in a millisecond has turns that end at instructions, too */
#define DG_PLACE_RANGES 1024u
#define DG_PLACE_ENTRIES 256u /* of pagemap, at once */
#define DG_PLACE_HOLES 64u
#define DG_PLACE_STACK (64ull << 10) /* of another thread */

struct dg_place {
	struct dg_range list[DG_PLACE_RANGES];
	struct dg_signal_ranges ranges;
	struct dg_range holes[DG_PLACE_HOLES]; /* what the kernel may be writing */
	uint32_t hole_count;
	bool unknown; /* there is more of that, or memory that there is no time to look at */
	uint64_t budget;
	long pagemap; /* descriptor */
};

static struct dg_place dg_place_now; /* of whoever has the right to run */
/* A real function was called. glibc and the kernel leave marks in its objects of threads that wait or have died, and
 * a replay, which does not call it, has none. */
static bool dg_place_real;

static void dg_place_hole(struct dg_place *p, uint64_t address, uint64_t length)
{
	if (!address || !length)
		return;
	if (p->hole_count == DG_PLACE_HOLES || length > 1ull << 40) {
		p->unknown = true;
		return;
	}
	p->holes[p->hole_count++] = (struct dg_range){ address, length };
}

/* What a call that has not come back may write. */
static void dg_place_call(struct dg_place *p, const struct dg_call *c)
{
	for (uint32_t i = 0; i < DG_PARTS && c->row->parts[i].how && c->row->parts[i].how < DG_IN; i++) {
		const struct dg_part *part = &c->row->parts[i];
		uint64_t count = dg_least(c->args[part->count], 1ull << 32);

		switch (part->how) {
		case DG_OUT_FIXED: case DG_OUT_POSITIVE: case DG_OUT_REMAINS: case DG_OUT_TIMEOUT:
			dg_place_hole(p, c->args[part->arg], part->size);
			break;
		case DG_OUT_RESULT: case DG_OUT_COUNTED:
			dg_place_hole(p, c->args[part->arg], count * part->size);
			break;
		case DG_OUT_BITS:
			dg_place_hole(p, c->args[part->arg], (count + 63) / 64 * 8);
			break;
		default:
			p->unknown = true;
		}
	}
}

/* A range without the holes. */
static void dg_place_add(struct dg_place *p, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t stop = end, next = end;

		for (uint32_t i = 0; i < p->hole_count; i++) {
			uint64_t low = p->holes[i].address, high = low + p->holes[i].length;

			if (high <= start || low >= stop)
				continue;
			stop = low > start ? low : start;
			next = high;
		}
		if (stop > start)
			dg_range_add(&p->ranges, &p->budget, start, stop);
		start = stop == end ? end : next > start ? next : stop;
	}
}

/* Pages that can be read, for the heap has pages that cannot. */
static void dg_place_readable(struct dg_place *p, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	if (dg_readable(start, end - start)) {
		dg_place_add(p, start, end);
		return;
	}
	for (uint64_t at = start; at < end; at += DG_PAGE_SIZE)
		if (dg_readable(at, DG_PAGE_SIZE))
			dg_place_add(p, at, at + DG_PAGE_SIZE);
}

/* The pages of a range that have been written, or read, since they were mapped. Any other is as it was from the start,
 * and was so at each earlier instruction. Where the kernel does not say, all count. Documentation/admin-guide/mm/pagemap.rst.
 * add takes the pages: dg_place_add where all of them can be read, for to try each costs more than its digest. */
static void dg_place_touched(struct dg_place *p, uint64_t start, uint64_t end, void (*add)(struct dg_place *, uint64_t, uint64_t))
{
	const uint64_t touched = 3ull << 62; /* present, or swapped out */
	uint64_t entries[DG_PLACE_ENTRIES], at = start & ~(DG_PAGE_SIZE - 1), from = start;

	while (at < end) {
		uint64_t count = dg_least((end - at + DG_PAGE_SIZE - 1) / DG_PAGE_SIZE, DG_PLACE_ENTRIES);

		if (dg_sys4(SYS_pread64, p->pagemap, entries, count * 8, at / DG_PAGE_SIZE * 8) != (long)(count * 8)) {
			dg_place_readable(p, from, end);
			return;
		}
		for (uint64_t i = 0; i < count; i++, at += DG_PAGE_SIZE) {
			if (entries[i] & touched)
				continue;
			add(p, from, at);
			from = at + DG_PAGE_SIZE;
		}
		if (p->budget == 0)
			break;
	}
	if (at < end)
		p->unknown = true;
	add(p, from, dg_least(at, end));
}

/* The objects of the agent's heap. */
static void dg_place_heap(struct dg_place *p)
{
	const struct dg_root *root = (const struct dg_root *)DG_BASE;
	uint64_t start = DG_BASE + DG_OFF_OBJECTS;

	if (dg_readable(DG_BASE, sizeof(*root)) && root->magic == DG_MAGIC)
		dg_place_touched(p, start, start + root->objects.mapped, dg_place_readable);
}

static void dg_place_others(struct dg_place *p, const struct dg_rthread *me)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);
		const struct dg_frame *f = (const struct dg_frame *)t->inside;
		struct dg_range live;

		if (t == me || t->state == DG_R_NONE || t->state == DG_R_ENDED || t->state == DG_R_STARTING || !f)
			continue;
		if (dg_hunt_of(t)->deaf || dg_hunt_of(t)->unseen)
			continue; /* a replay waits elsewhere */
		live = dg_live_stack(t, f->rsp);
		dg_place_add(p, live.address, live.address + dg_least(live.length, DG_PLACE_STACK));
	}
}

static void dg_place_find(struct dg_place *p, const struct dg_rthread *me, uint64_t sp)
{
	p->ranges = (struct dg_signal_ranges){ .range = p->list, .most = DG_PLACE_RANGES };
	p->hole_count = 0;
	p->unknown = dg_place_real;
	p->budget = DG_PLACE_DIGESTED;
	p->ranges.range[p->ranges.count++] = dg_live_stack(me, sp);
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		const struct dg_rthread *t = dg_rthread_number(i);

		if (t == me || t->state == DG_R_NONE || t->state == DG_R_ENDED)
			continue;
		if (t->thread_pointer)
			dg_place_hole(p, t->thread_pointer, DG_PAGE_SIZE); /* glibc's and the kernel's words for a thread */
		if (dg_hunt_of(t)->away && dg_hunt_of(t)->call)
			dg_place_call(p, dg_hunt_of(t)->call);
		else if (dg_hunt_of(t)->away)
			p->unknown = true;
		p->unknown |= dg_hunt_of(t)->unseen; /* a waiting thread has marked the lock */
	}
	dg_place_hole(p, me->thread_pointer, DG_PAGE_SIZE);
	if (dg_data_known.changed != dg_mappings_changed)
		dg_data_read();
	p->pagemap = dg_sys3(SYS_open, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	for (uint32_t i = 0; i < dg_data_known.count; i++)
		dg_place_touched(p, dg_data_known.range[i].address, dg_data_known.range[i].address + dg_data_known.range[i].length, dg_place_add);
	dg_place_heap(p);
	if (p->pagemap >= 0)
		dg_sys1(SYS_close, p->pagemap);
	dg_place_others(p, me);
	p->unknown |= p->ranges.left_out != 0 || dg_data_known.more;
}

/* The event of the turn's end, to be committed; NULL: nothing is logged any more. */
static struct dg_event *dg_place_log(const struct dg_place *p, const struct dg_rthread *me, const struct dg_frame *f, uint64_t vectors)
{
	struct dg_signal_state state;
	struct dg_ucontext uc;
	struct dg_event *e;
	uint64_t *args;

	dg_registers_of(&uc, f);
	dg_state_of(&state, me, &uc, false);
	e = dg_event_begin(DG_EV_POINT, f->rip, 0, 7, 2 * sizeof(struct dg_payload) + sizeof(state) + p->ranges.count * sizeof(struct dg_range) +
			   dg_words_room(&p->ranges));
	if (!e)
		return NULL;
	args = dg_event_args(e);
	args[0] = DG_POINT_STATE;
	args[1] = 0;
	args[2] = dg_digest(state.registers, sizeof(state.registers), 0);
	args[3] = dg_digest((const void *)p->ranges.range[0].address, p->ranges.range[0].length, 0);
	args[4] = dg_data_digest(&p->ranges);
	args[5] = p->ranges.left_out;
	args[6] = vectors;
	dg_event_payload(e, DG_PAYLOAD_REGISTERS, 0, &state, sizeof(state));
	dg_event_payload(e, DG_PAYLOAD_RANGES, 0, p->ranges.range, p->ranges.count * (uint32_t)sizeof(struct dg_range));
	dg_words_log(e, &p->ranges);
	return e;
}

/* ---- the end of a turn at an instruction ---- */

/* The tracer was killed, or has detached. The log ends, and the program continues, in turns. */
static void dg_turns_untraced(struct dg_rthread *me, const struct dg_ucontext *uc)
{
	uint64_t pc = uc->context.registers[DG_REG_RIP];
	struct dg_frame frame;

	if (!me || me->state == DG_R_STARTING || DG_CONTROL->holder != me->index)
		return;
	DG_HUNT->turn_over = 1;
	if (dg_in_engine(me, pc) || dg_in_library(pc))
		return;
	dg_frame_of(&frame, uc);
	me->inside = (uint64_t)&frame;
	dg_log_stop(DG_LIMIT_TRACER, "the recorder is gone");
	dg_turns_arrive(DG_EV_POINT, pc);
	me->inside = 0;
}

/* ns of the processor; others may have it meanwhile. */
static uint64_t dg_place_time(void)
{
	struct timespec t = { 0, 0 };

	dg_sys2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
	return dg_hunt_ns(&t);
}

static int64_t dg_place_credit = DG_PLACE_CREDIT; /* ns that digests may take now */

static void dg_place_earn(void)
{
	static uint64_t last;
	int64_t earned = dg_place_credit + (int64_t)((DG_HUNT->clock - last) / DG_PLACE_SHARE);

	last = DG_HUNT->clock;
	dg_place_credit = earned < DG_PLACE_CREDIT ? earned : DG_PLACE_CREDIT;
}

static void dg_turns_end_here(struct dg_rthread *me, const struct dg_frame *f, struct dg_rthread *next, uint64_t vectors)
{
	struct dg_hunt *h = DG_HUNT;
	static uint64_t put_off, since; /* the last turn whose end came here, and ns of the processor when it did so first */
	uint64_t began;
	struct dg_place *place = &dg_place_now;
	struct dg_event *e;

	began = dg_place_time();
	dg_place_earn();
	if (dg_place_credit <= 0) {
		dg_turns_later(me, DG_PLACE_SHARE * (uint64_t)(1 - dg_place_credit));
		return;
	}
	dg_place_find(place, me, f->rsp);
	if (put_off != h->turn) {
		put_off = h->turn;
		since = began;
	}
	if (place->unknown && began - since < DG_TURN_PATIENCE) {
		h->put_off++;
		dg_turns_later(me, DG_TURN_PATIENCE);
		return;
	}
	e = dg_place_log(place, me, f, vectors);
	if (!e)
		return;
	dg_place_credit -= (int64_t)(dg_place_time() - began);
	h->placed++;
	h->misplaced += place->unknown;
	me->waits_for = DG_EV_POINT;
	me->waits_object = f->rip;
	h->turn_alone = 0;
	dg_event_commit_pending(e);
	dg_turns_begin(next);
	do {
		dg_hunt_lend(me, next);
		if (!dg_hunt_ready(me))
			next = dg_hunt_next(me, false);
	} while (!dg_hunt_ready(me));
	dg_event_due(e);
}

static void dg_turns_here(uint64_t vectors)
{
	extern const char dg_exit_check[] DG_HIDDEN;
	struct dg_rthread *me = dg_me;
	const struct dg_frame *f = (const struct dg_frame *)me->inside;
	uint64_t ordinal = me->ordinal;
	uint32_t next;

	dg_turns_tick();
	dg_hunt_passed(me, false);
	dg_turns_idle_spins = 0;
	next = dg_turns_after(me);
	DG_HUNT->steps++;
	if (!dg_turns_may_end(me)) {
		dg_turns_keep_less(me);
		dg_turns_later(me, 0);
	} else if (next && next != me->index) {
		dg_turns_end_here(me, f, dg_rthread_number(next), vectors);
	} else {
		DG_HUNT->turn_alone++;
		dg_turns_begin(me);
	}
	dg_hunt_goes_on(me);
	if (me->ordinal != ordinal)
		dg_point_passed_again(me, f->rip);
	((void (*)(void))dg_exit_check)();
	__builtin_unreachable();
}
