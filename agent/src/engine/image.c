/* A replay: the log as it is in the image, and where a thread does something
 * else than it says.
 *
 * The image was made of a log that may be damaged or malicious: nothing is read
 * outside of it, and nothing that it says makes a loop endless. */
#include "engine/engine.h"
#include "engine/free.h"
#include "syscall.h"

#define DG_IMAGE ((const struct dg_replay_header *)DG_ENGINE_IMAGE)

static bool dg_points; /* the image has some of a search's */
static uint64_t dg_image_size;

/* ---- divergence ---- */

__attribute__((noreturn)) static void dg_end_of_replay(enum dg_trap what)
{
	/* The controller does not let the thread continue. Without one, no thread is left
	 * to whom the result would mean anything. */
	for (;;) {
		dg_trap(what, dg_me ? dg_me->index : 0, 0);
		if (!DG_CONTROL->tracer)
			dg_sys1(SYS_exit_group, 255);
	}
}

__attribute__((noreturn)) static void dg_diverge_at(enum dg_reason reason, const struct dg_event *expected, uint64_t place,
						    uint64_t want, uint64_t got, const struct dg_event *event,
						    const uint64_t *args, uint32_t count)
{
	struct dg_divergence *d = &DG_CONTROL->divergence;
	const struct dg_frame *f = (const struct dg_frame *)dg_me->inside;
	uint32_t none = DG_DIFFERS_NONE;

	dg_free_diverges(reason, expected, place, want, got, event);
	/* The first one counts. */
	if (!__atomic_compare_exchange_n(&d->reason, &none, reason, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		dg_end_of_replay(DG_TRAP_DIVERGED);
	d->thread = dg_me->index;
	d->ordinal = dg_me->ordinal + 1;
	d->expected = (uint64_t)expected;
	d->pc = f ? f->rip : 0;
	d->sp = f ? f->rsp : 0;
	d->place = place;
	d->want = want;
	d->got = got;
	d->event = *event;
	for (uint32_t i = 0; i < count && i < sizeof(d->args) / sizeof(d->args[0]); i++)
		d->args[i] = args[i];
	dg_end_of_replay(DG_TRAP_DIVERGED);
}

__attribute__((noreturn)) static void dg_diverge(enum dg_reason reason, const struct dg_event *expected, uint64_t place,
						 uint64_t want, uint64_t got)
{
	struct dg_event event = { .kind = (uint8_t)dg_me->waits_for, .object = dg_me->waits_object };

	dg_diverge_at(reason, expected, place, want, got, &event, NULL, 0);
}

/* ---- the image ---- */

static bool dg_in_image(uint64_t address, uint64_t bytes)
{
	uint64_t at = address - DG_ENGINE_IMAGE;

	return address >= DG_ENGINE_IMAGE && at <= dg_image_size && bytes <= dg_image_size - at;
}

static const struct dg_replay_thread *dg_image_thread(uint32_t index)
{
	return index && index < DG_IMAGE->threads ? (const struct dg_replay_thread *)DG_IMAGE->table + index : NULL;
}

/* Once, after it was mapped with so many bytes. */
static bool dg_image_sound(uint64_t size)
{
	const struct dg_replay_header *h = DG_IMAGE;

	dg_image_size = size;
	if (size < sizeof(*h) || h->magic != DG_RECORD_MAGIC || h->version != DG_RECORD_VERSION || h->size > size ||
	    h->threads > DG_RTHREADS || h->run_count > size / sizeof(struct dg_run))
		return false;
	if (((h->table | h->runs) & 7) || !dg_in_image(h->table, h->threads * sizeof(struct dg_replay_thread)) ||
	    !dg_in_image(h->runs, h->run_count * sizeof(struct dg_run)))
		return false;
	for (uint32_t i = 1; i < h->threads; i++) {
		const struct dg_replay_thread *t = dg_image_thread(i);

		if (!t->start && !t->end)
			continue; /* it was killed before its first event */
		if ((t->start & 7) || t->end < t->start || !dg_in_image(t->start, t->end - t->start))
			return false;
		dg_points |= t->points != 0;
	}
	return true;
}

static const uint64_t *dg_logged_args(const struct dg_event *e)
{
	return (const uint64_t *)(e + 1);
}

static const void *dg_payload_bytes(const struct dg_payload *p)
{
	return p + 1;
}

/* The payload after p; p itself is within the event that ends at end, or is
 * its end. */
static const struct dg_payload *dg_payload_next(const struct dg_payload *p, uint64_t end)
{
	uint64_t left = end - (uint64_t)p, bytes;

	if (left < sizeof(*p))
		return NULL;
	bytes = sizeof(*p) + (((uint64_t)p->length + 7) & ~7ull);
	return bytes <= left ? (const struct dg_payload *)((const uint8_t *)p + bytes) : NULL;
}

static bool dg_event_sound(const struct dg_event *e, uint64_t end)
{
	uint64_t left = end - (uint64_t)e, here;
	const struct dg_payload *p;

	if (left < sizeof(*e) || (e->length & 7) || e->length > left ||
	    e->length < sizeof(*e) + e->args * sizeof(uint64_t))
		return false;
	here = (uint64_t)e + e->length;
	p = (const struct dg_payload *)(dg_logged_args(e) + e->args);
	for (uint32_t i = 0; i < e->payloads; i++) {
		p = dg_payload_next(p, here);
		if (!p)
			return false;
	}
	return true;
}

static const struct dg_payload *dg_logged_payload(const struct dg_event *e, uint32_t i)
{
	const struct dg_payload *p = (const struct dg_payload *)(dg_logged_args(e) + e->args);

	if (i >= e->payloads)
		return NULL;
	while (i--)
		p = dg_payload_next(p, (uint64_t)e + e->length);
	return p;
}

static void dg_payload_write(const struct dg_event *e)
{
	for (uint32_t i = 0; i < e->payloads; i++) {
		const struct dg_payload *p = dg_logged_payload(e, i);
		uint64_t end = p->address + p->length;

		if (p->kind != DG_PAYLOAD_OUT)
			continue;
		/* No kernel wrote there for the program. */
		if (end < p->address || (p->address < DG_ENGINE_STACKS && end > DG_ENGINE_BASE))
			dg_diverge(DG_DIFFERS_LOG, e, i, 0, p->address);
		dg_copy((void *)p->address, dg_payload_bytes(p), p->length);
	}
}

static const struct dg_event *dg_event_peek(void)
{
	const struct dg_event *e = (const struct dg_event *)dg_me->next;

	if (dg_me->next >= dg_me->next_end)
		return NULL;
	if (!dg_event_sound(e, dg_me->next_end))
		dg_diverge(DG_DIFFERS_LOG, e, 0, 0, 0);
	return e;
}

/* From e on, the first event that has none of the flags; NULL: there is none. */
static const struct dg_event *dg_event_skip(const struct dg_rthread *me, const struct dg_event *e, uint32_t flags)
{
	while (e && e->flags & flags) {
		e = (const struct dg_event *)((const uint8_t *)e + e->length);
		if ((uint64_t)e >= me->next_end)
			return NULL;
		if (!dg_event_sound(e, me->next_end))
			dg_diverge(DG_DIFFERS_LOG, e, 0, 0, 0);
	}
	return e;
}

static const struct dg_event *dg_event_hard(void)
{
	const struct dg_event *e = dg_event_peek();

	return dg_event_skip(dg_me, e, DG_EVENT_SOFT | DG_EVENT_EXTRA);
}
