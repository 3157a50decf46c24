/* Everything checked: every canary, every fill. It runs beside threads that
 * allocate and free, without stopping them, and relies on the order of stores
 * that layout.h promises: what looks damaged is looked at again, and only
 * damage that stands while the word, the span and the ring's entry are the
 * same before and after is evidence.
 *
 * The super-heap's lock is held a span at a time, so that spans do not dissolve
 * meanwhile; never while something is reported, because the program's handler
 * of SIGABRT may allocate.
 */
#include "agent.h"
#include "syscall.h"

#include <string.h>
#include <time.h>

static uint64_t dg_check_next; /* milliseconds of the monotonic clock: none before */

/* The bytes to be judged: where they are, and the word that should be in [from, to). */
struct dg_suspect {
	struct dg_span *span;
	uint64_t *word, value; /* the slot's word, as it was when the rest was read */
	uint64_t object, size, slot, slot_end;
	uint64_t from, to, pattern;
	uint32_t kind;
	struct dg_freed freed;
};

static uint64_t dg_load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static bool dg_unreported(uint64_t word)
{
	return !(word >> DG_WORD_REPORTED & 1);
}

/* Whether damage stands and the object is still what it was. */
static bool dg_damaged(const struct dg_suspect *s, uint64_t *first, uint64_t *last)
{
	uint8_t kind = __atomic_load_n(&s->span->kind, __ATOMIC_ACQUIRE);
	uint64_t size = s->span->size;
	bool damaged = dg_damage(s->from, s->to, s->pattern, first, last);

	DG_ORDER();
	return damaged && dg_load(s->word) == s->value && s->span->size == size &&
	       __atomic_load_n(&s->span->kind, __ATOMIC_ACQUIRE) == kind;
}

/* Marks the object as reported, unless its owner did something with it in the
 * meantime, and reports it. */
static DG_COLD void dg_accuse(const struct dg_suspect *s, uint32_t when)
{
	struct dg_error e;
	uint64_t value = s->value;

	memset(&e, 0, sizeof(e));
	if (!dg_damaged(s, &e.damage, &e.damage_end) ||
	    !__atomic_compare_exchange_n(s->word, &value, value | 1ull << DG_WORD_REPORTED, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	e.kind = s->kind;
	e.when = when;
	e.word_valid = 1;
	e.object = s->object;
	e.size = s->size;
	e.word = s->value;
	e.guard = s->kind == DG_ERROR_USE_AFTER_FREE ? 0 : s->pattern;
	e.slot = s->slot;
	e.slot_end = s->slot_end;
	e.free_site = s->freed.site;
	e.free_thread = s->freed.thread;
	dg_error(&e, NULL);
}

static bool dg_suspect_canary(struct dg_suspect *s, uint64_t from, uint64_t to, uint32_t kind)
{
	uint64_t first, last;

	s->from = from;
	s->to = to;
	s->pattern = s->span->kind == DG_SPAN_SMALL ? dg_canary_of(s->word) : dg_canary_of_large(s->span);
	s->kind = kind;
	return dg_damaged(s, &first, &last);
}

static bool dg_suspect_fill(struct dg_suspect *s)
{
	uint64_t first, last;

	s->from = s->object;
	s->to = s->object + DG_FILLED(s->size, dg_hot.fill);
	s->pattern = DG_FILL_WORD(dg_hot.objects, s->object);
	s->kind = DG_ERROR_USE_AFTER_FREE;
	return dg_damaged(s, &first, &last);
}

static void dg_suspect_slot(struct dg_suspect *s, struct dg_span *span, uint64_t index)
{
	s->span = span;
	s->word = (uint64_t *)span->words + index;
	s->value = dg_load(s->word);
	s->size = s->value & DG_SIZE_MASK;
	s->object = s->slot = dg_span_start(span) + span->first + index * span->slot;
	s->slot_end = s->slot + span->slot;
	s->freed = (struct dg_freed){ .object = s->object };
}

static bool dg_check_slot(struct dg_suspect *s, struct dg_span *span, uint64_t index)
{
	dg_suspect_slot(s, span, index);
	if (!dg_unreported(s->value) || s->size + DG_MIN_CANARY > span->slot)
		return false;
	switch (dg_state(s->value)) {
	case DG_LIVE:
		return !dg_canary_stands(s->object, s->size, span->slot, dg_canary_of(s->word)) &&
		       dg_suspect_canary(s, s->object + s->size,
					 dg_canary_end(s->object, s->size, span->slot),
					 DG_ERROR_OVERFLOW);
	case DG_REUSABLE:
		return !dg_fill_stands(s->object, DG_FILLED(s->size, dg_hot.fill)) && dg_suspect_fill(s);
	}
	return false; /* the rings tell which of the quarantined are filled */
}

static bool dg_check_front(struct dg_suspect *s, struct dg_span *span)
{
	uint64_t start = dg_span_start(span);

	dg_suspect_slot(s, span, 0);
	if (dg_canary_run_stands(start, start + span->first, dg_canary_of(s->word)))
		return false;
	/* A word that says fresh has to stay 0. */
	return dg_unreported(s->value) && dg_state(s->value) != DG_FRESH &&
	       dg_suspect_canary(s, start, start + span->first, DG_ERROR_UNDERFLOW);
}

/* Slots from *next on, until one is suspect. */
static bool dg_check_small(struct dg_suspect *s, struct dg_span *span, uint64_t *next)
{
	if (*next == 0 && dg_check_front(s, span))
		return ++*next;
	for (uint64_t i = *next ? *next - 1 : 0; i < span->carved; i++)
		if (dg_check_slot(s, span, i)) {
			*next = i + 2;
			return true;
		}
	return false;
}

static bool dg_check_large(struct dg_suspect *s, struct dg_span *span)
{
	uint64_t before;

	s->span = span;
	s->word = &span->reserved[0];
	s->value = dg_load(s->word);
	s->object = span->object;
	s->size = span->size;
	s->slot = dg_span_start(span);
	s->slot_end = span->end;
	s->freed = (struct dg_freed){ span->object, span->free_site, span->free_thread };
	if (!dg_unreported(s->value))
		return false;
	if (dg_state(s->value) != DG_LIVE)
		return dg_state(s->value) != DG_FRESH && span->kind == DG_SPAN_FREED &&
		       dg_suspect_fill(s);
	if (span->kind != DG_SPAN_LARGE)
		return false;
	s->freed = (struct dg_freed){ .object = 0 };
	before = dg_before(span, s->object);
	return dg_suspect_canary(s, s->object + s->size, dg_behind(s->object, s->size, span->end),
				 DG_ERROR_OVERFLOW) ||
	       dg_suspect_canary(s, before, s->object, DG_ERROR_UNDERFLOW);
}

/* One span; returns its length in units. */
static uint64_t dg_check_span(uint64_t index, uint32_t when)
{
	struct dg_span *span = dg_span(index);
	struct dg_suspect suspect;
	uint64_t units, next = 0;
	bool found;

	do {
		if (!dg_lock())
			return 1;
		units = span->kind == DG_SPAN_SMALL || span->kind == DG_SPAN_LARGE ||
			span->kind == DG_SPAN_FREED ? span->units : 1;
		if (span->kind == DG_SPAN_SMALL)
			found = dg_check_small(&suspect, span, &next);
		else
			found = units > 1 && !next++ && dg_check_large(&suspect, span);
		dg_unlock();
		if (found)
			dg_accuse(&suspect, when);
	} while (found);
	return units;
}

/* Entry i of a ring, if it is still inside. The ring may grow meanwhile, and
 * then another one's entry may be read: so what it leads to is examined. */
static bool dg_ring_entry(const struct dg_ring *r, uint32_t i, struct dg_freed *out)
{
	uint32_t mask = __atomic_load_n(&r->mask, __ATOMIC_ACQUIRE);
	uint64_t entries = dg_load(&r->entries);

	if (!entries)
		return false;
	*out = ((const struct dg_freed *)entries)[i & mask];
	DG_ORDER();
	return __atomic_load_n(&r->mask, __ATOMIC_ACQUIRE) == mask && dg_load(&r->entries) == entries &&
	       i - __atomic_load_n(&r->head, __ATOMIC_ACQUIRE) <
		       __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) - __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
}

static bool dg_suspect_freed(struct dg_suspect *s, const struct dg_freed *freed)
{
	struct dg_span *span;
	uint64_t start;

	if (freed->object - dg_hot.objects >= dg_root->boundary - dg_hot.objects)
		return false;
	span = dg_span_of(freed->object);
	start = dg_span_start(span) + span->first;
	if (span->kind != DG_SPAN_SMALL || freed->object < start ||
	    dg_slot_index(span, freed->object) >= span->slots)
		return false;
	dg_suspect_slot(s, span, dg_slot_index(span, freed->object));
	s->freed = *freed;
	return s->object == freed->object && dg_unreported(s->value) &&
	       dg_state(s->value) == DG_QUARANTINED && s->size + DG_MIN_CANARY <= span->slot;
}

static void dg_check_ring(const struct dg_ring *r, uint32_t when)
{
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	struct dg_suspect suspect;
	struct dg_freed freed, again;

	for (uint32_t i = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE); i != tail; i++) {
		if (!dg_ring_entry(r, i, &freed) || !dg_suspect_freed(&suspect, &freed) ||
		    dg_fill_stands(suspect.object, DG_FILLED(suspect.size, dg_hot.fill)) || !dg_suspect_fill(&suspect))
			continue;
		if (dg_ring_entry(r, i, &again) && !memcmp(&freed, &again, sizeof(freed)))
			dg_accuse(&suspect, when);
	}
}

static void dg_check_everything(uint32_t when)
{
	uint64_t units, i;

	units = (dg_root->boundary - dg_hot.objects) >> DG_UNIT_SHIFT;
	for (i = 0; i < units;)
		i += dg_check_span(i, when);
	for (i = 0; i < dg_root->heaps.used; i++)
		for (uint32_t c = 0; c < DG_CLASSES; c++)
			dg_check_ring(&dg_heap_number(i)->bins[c].ring, when);
}

/* Waits for the one that another thread is at. */
static DG_COLD void dg_check_all(uint32_t when)
{
	if (!dg_hold(DG_LEVEL_CHECK))
		return;
	dg_check_everything(when);
	dg_let_go(DG_LEVEL_CHECK);
}

static uint64_t dg_milliseconds(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* When the next check is due. However large the heap, the program has at least
 * half of the time. */
static uint64_t dg_check_after(uint64_t start, uint64_t end, uint64_t interval)
{
	return end + interval + (end - start);
}

static DG_COLD void dg_check_if_due(void)
{
	uint64_t start = dg_milliseconds(CLOCK_MONOTONIC_COARSE), end;

	/* Who comes second leaves it to the first. */
	if (start < __atomic_load_n(&dg_check_next, __ATOMIC_RELAXED) || !dg_try(DG_LEVEL_CHECK))
		return;
	if (start >= __atomic_load_n(&dg_check_next, __ATOMIC_RELAXED)) {
		start = dg_milliseconds(CLOCK_MONOTONIC);
		dg_check_everything(DG_AT_CHECK);
		end = dg_milliseconds(CLOCK_MONOTONIC);
		__atomic_store_n(&dg_check_next,
				 dg_check_after(start, end, dg_root->options.check_interval_ms),
				 __ATOMIC_RELAXED);
	}
	dg_let_go(DG_LEVEL_CHECK);
}

static inline void dg_check_due(void)
{
	if (DG_UNLIKELY(dg_root->options.check_interval_ms))
		dg_check_if_due();
}
