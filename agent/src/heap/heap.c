/* A thread's heap: the paths that malloc and free take nearly always, and what
 * they fall back on. */
#include "agent.h"
#include "heap/classes.h"
#include "heap/hot.h"

#include <errno.h>

#define DG_WORD(state, api) ((uint64_t)(state) << DG_WORD_STATE | (uint64_t)(api) << DG_WORD_API)

/* What part of the quarantine is for large objects. */
#define DG_LARGE_SHARE 4

static bool dg_heap_init(struct dg_heap *h)
{
	uint64_t share, keep;
	uint32_t c, slot;

	h->waiting = (uint64_t)dg_meta(sizeof(uint64_t[DG_CLASSES][DG_BATCH]), 64);
	if (!h->waiting)
		return false;
	h->budget = dg_root->options.quarantine - dg_root->options.quarantine / DG_LARGE_SHARE;
	h->low = h->budget - h->budget / 8;
	share = h->budget / 32;
	for (c = 0; c < DG_CLASSES; c++) {
		slot = dg_class_slot(c);
		keep = share / slot;
		if (h->budget && slot <= 1024 && keep < 16)
			keep = 16;
		h->bins[c].slot = slot;
		h->bins[c].keep = (uint32_t)(keep < DG_RING_LAST / 2 ? keep : DG_RING_LAST / 2);
	}
	return true;
}

static bool dg_heaps_start(void)
{
	struct dg_heap *h = (struct dg_heap *)dg_root->heaps.start;

	dg_root->options.fill_bytes &= ~15u;
	dg_hot.canary = dg_root->options.canary;
	dg_hot.fill = dg_root->options.fill_bytes;
	dg_hot.fast = dg_fresh_byte ? 0 : DG_SMALL_MAX - DG_MIN_CANARY;
	dg_root->large_budget = dg_root->options.quarantine / DG_LARGE_SHARE;
	if (!dg_grow(&dg_root->heaps, 1u << 16) || !dg_heap_init(h))
		return false;
	h->state = DG_HEAP_OWNED;
	h->word = DG_WORD(DG_LIVE, 0);
	dg_hot.shared = h;
	dg_root->heaps.used = 1;
	return dg_spare_start();
}

/* The heap that serves this call when the thread's own cannot. */
static DG_COLD struct dg_heap *dg_enter_slow(void)
{
	struct dg_heap *h = dg_self ? dg_self : dg_attach();

	if (h && !h->busy) {
		h->word = DG_WORD(DG_LIVE, 0) | (uint64_t)h->thread << DG_WORD_THREAD;
		h->busy = 1;
		DG_ORDER();
		return h;
	}
	if (!dg_hot.shared || !dg_hold(DG_LEVEL_SHARED))
		return NULL;
	return dg_hot.shared;
}

static inline void dg_leave(struct dg_heap *h)
{
	DG_ORDER();
	if (DG_UNLIKELY(h == dg_hot.shared))
		dg_let_go(DG_LEVEL_SHARED);
	else
		h->busy = 0;
}

/* A reusable object that a batch brought. */
static void *dg_reuse(uint64_t object, uint64_t size, uint64_t word, const uint64_t *slot)
{
	struct dg_span *s = dg_span_of(object);
	uint64_t *w = (uint64_t *)s->words + dg_slot_index(s, object);

	if (DG_UNLIKELY(!dg_fill_stands(object, dg_filled(s->slot))))
		dg_report_fill(object, w, NULL, DG_AT_EVICTION, slot);
	*w = dg_with_state(*w, DG_QUARANTINED);
	DG_ORDER();
	dg_canary_put(object, size, s->slot, dg_canary_of(w));
	DG_ORDER();
	*w = word | size;
	return (void *)object;
}

static DG_HOT void *dg_bump(struct dg_bin *bin, uint64_t size, uint64_t word)
{
	uint64_t object = bin->bump, *w = (uint64_t *)bin->bump_word;

	bin->bump = object + bin->slot;
	bin->bump_word = (uint64_t)(w + 1);
	dg_canary_put(object, size, bin->slot, dg_canary_of(w));
	DG_ORDER();
	*w = word | size;
	return (void *)object;
}

/* Fresh slots are taken by so many bytes, so that slots that wait in the super-heap are
 * used before more memory is touched. */
#define DG_BUMP_STEP 4096u

static void dg_bump_start(struct dg_bin *bin, const struct dg_span *s)
{
	bin->span = (uint32_t)dg_span_index(s) + 1;
	bin->bump_word = s->words;
	bin->bump = bin->bump_end = dg_span_start(s) + s->first;
}

static bool dg_bump_more(struct dg_bin *bin)
{
	uint64_t end, step = DG_BUMP_STEP / bin->slot * bin->slot;
	const struct dg_span *s;

	if (!bin->span)
		return false;
	s = dg_span(bin->span - 1);
	end = dg_span_start(s) + s->first + (uint64_t)s->slots * s->slot;
	bin->bump_end = bin->bump + (step ? step : bin->slot);
	if (bin->bump_end >= end) {
		bin->bump_end = end;
		bin->span = 0; /* once all of its slots wait, it goes */
	}
	return true;
}

/* Neither the ring nor the span has one to give. */
static DG_COLD void *dg_refill(struct dg_heap *h, uint32_t c, uint64_t size, uint64_t word,
			       const uint64_t *slot)
{
	struct dg_bin *bin = &h->bins[c];
	uint64_t *row = (uint64_t *)h->waiting + c * DG_BATCH;
	struct dg_span *s;

	if (bin->waiting)
		return dg_reuse(row[--bin->waiting], size, word, slot);
	dg_check_due();
	if (!dg_lock())
		return NULL;
	bin->waiting = dg_waiting_take(c, row, DG_BATCH);
	if (!bin->waiting && !bin->span) {
		s = dg_span_new((uint32_t)(h - dg_hot.shared), c);
		if (s) {
			dg_spare_provide();
			dg_bump_start(bin, s);
		}
	}
	dg_unlock();
	if (bin->waiting)
		return dg_reuse(row[--bin->waiting], size, word, slot);
	return dg_bump_more(bin) ? dg_bump(bin, size, word) : NULL;
}

/* Whether the oldest of the ring is to be reused rather than a fresh slot. */
static DG_HOT bool dg_ring_gives(const struct dg_heap *h, const struct dg_bin *bin)
{
	uint32_t count = bin->ring.tail - bin->ring.head;

	return count > bin->keep || (h->quarantined > h->low && count);
}

/* The oldest object of a ring; NULL if its fill does not stand, unless that is
 * to be reported. */
static DG_HOT void *dg_pop(struct dg_heap *h, struct dg_bin *bin, uint64_t size, uint64_t word,
			   const uint64_t *report)
{
	struct dg_freed *entries = (struct dg_freed *)bin->ring.entries;
	uint32_t head = bin->ring.head, mask = bin->ring.mask;
	uint64_t object = entries[head & mask].object;
	uint64_t *w = dg_word_of(object);

	__builtin_prefetch((const void *)entries[(head + 4) & mask].object, 1);
	__builtin_prefetch((const void *)(entries[(head + 4) & mask].object + 64), 1);
	if (DG_UNLIKELY(!dg_fill_stands(object, dg_filled(bin->slot)))) {
		if (!report)
			return NULL;
		dg_report_fill(object, w, &entries[head & mask], DG_AT_EVICTION, report);
	}
	bin->ring.head = head + 1;
	h->quarantined -= bin->slot;
	DG_ORDER();
	dg_canary_put(object, size, bin->slot, dg_canary_of(w));
	DG_ORDER();
	*w = word | size;
	return (void *)object;
}

static void *dg_take(struct dg_heap *h, uint32_t c, uint64_t size, uint64_t word,
		     const uint64_t *slot)
{
	struct dg_bin *bin = &h->bins[c];

	if (dg_ring_gives(h, bin))
		return dg_pop(h, bin, size, word, slot);
	if (DG_LIKELY(bin->bump != bin->bump_end))
		return dg_bump(bin, size, word);
	return dg_refill(h, c, size, word, slot);
}

static uint64_t dg_new_word(struct dg_heap *h, uint32_t api, const uint64_t *slot)
{
	return h->word | (uint64_t)api << DG_WORD_API |
	       (uint64_t)dg_site_at(h, slot) << DG_WORD_SITE;
}

/* The smallest class whose slots are large enough and aligned so. */
static uint32_t dg_aligned_class(uint64_t size, uint64_t align)
{
	uint32_t c;

	for (c = dg_class(size + DG_MIN_CANARY); c < DG_CLASSES; c++)
		if (dg_class_align(dg_class_slot(c)) >= align)
			return c;
	return DG_CLASSES;
}

/* A small object if the class is one. */
static void *dg_obtain(struct dg_heap *h, uint32_t c, uint64_t size, uint64_t align, uint64_t word,
		       const uint64_t *slot, bool *zero)
{
	if (c < DG_CLASSES)
		return dg_take(h, c, size, word, slot);
	return dg_large_new(size, align, word, slot, zero);
}

/* Everything that the fast path does not do: no heap yet, interruptions,
 * alignment, large objects, memory to be filled. *clean, if wanted: its memory is zero. */
static DG_COLD void *dg_allocate_slow(uint64_t size, uint64_t align, uint32_t api,
				      const uint64_t *slot, bool *clean)
{
	struct dg_heap *h = dg_enter_slow();
	uint32_t c = DG_CLASSES;
	bool zero = false;
	uint64_t word;
	void *p;

	if (!h) {
		p = dg_spare(NULL, size, align, api, slot);
		if (!p) {
			dg_failed(NULL, size, slot);
			errno = ENOMEM;
		}
		return p;
	}
	word = dg_new_word(h, api, slot);
	if (size <= DG_SMALL_MAX - DG_MIN_CANARY && align <= 4096)
		c = dg_aligned_class(size, align);
	p = dg_obtain(h, c, size, align, word, slot, &zero);
	if (DG_UNLIKELY(!p) && size <= DG_OBJECTS_LIMIT && dg_give_way(h, slot))
		p = dg_obtain(h, c, size, align, word, slot, &zero);
	if (DG_UNLIKELY(!p))
		p = dg_spare(h, size, align, api, slot);
	if (p) {
		h->allocations++;
	} else {
		dg_failed(h, size, slot);
		errno = ENOMEM;
	}
	if (clean)
		*clean = zero;
	else if (dg_fresh_byte && p)
		memset(p, (int)dg_fresh_byte, size);
	dg_leave(h);
	return p;
}

/* A small object, the heap being entered: what of it needs a call. */
static DG_COLD void *dg_allocate_rest(struct dg_heap *h, uint64_t size, uint32_t api,
				      const uint64_t *slot)
{
	uint64_t word = dg_new_word(h, api, slot);
	uint32_t c = dg_class(size + DG_MIN_CANARY);
	void *p = dg_take(h, c, size, word, slot);

	if (DG_UNLIKELY(!p) && dg_give_way(h, slot))
		p = dg_take(h, c, size, word, slot);
	if (DG_UNLIKELY(!p))
		p = dg_spare(h, size, 16, api, slot);
	if (p) {
		h->allocations++;
	} else {
		dg_failed(h, size, slot);
		errno = ENOMEM;
	}
	dg_leave(h);
	return p;
}

/* NULL and ENOMEM when there is no memory. A leaf: everything that needs a
 * call is left to functions called last, so that no registers are saved. */
static DG_HOT void *dg_allocate(uint64_t size, uint32_t api, const uint64_t *slot)
{
	struct dg_heap *h = dg_self;
	struct dg_bin *bin;
	uint64_t word;
	uint32_t site;
	void *p;

	if (DG_UNLIKELY(!h || h->busy || size > dg_hot.fast))
		return dg_allocate_slow(size, 16, api, slot, NULL);
	h->busy = 1;
	DG_ORDER();
	site = dg_site_met(slot);
	if (DG_UNLIKELY(!site))
		return dg_allocate_rest(h, size, api, slot);
	word = h->word | (uint64_t)api << DG_WORD_API | (uint64_t)site << DG_WORD_SITE;
	bin = &h->bins[dg_class(size + DG_MIN_CANARY)];
	if (dg_ring_gives(h, bin)) {
		p = dg_pop(h, bin, size, word, NULL);
		if (DG_UNLIKELY(!p))
			return dg_allocate_rest(h, size, api, slot);
	} else if (DG_LIKELY(bin->bump != bin->bump_end)) {
		p = dg_bump(bin, size, word);
	} else {
		return dg_allocate_rest(h, size, api, slot);
	}
	h->allocations++;
	DG_ORDER();
	h->busy = 0;
	if (!p)
		__builtin_unreachable();
	return p;
}
