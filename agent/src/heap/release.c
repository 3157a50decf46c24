/* free and realloc. */
#include "agent.h"
#include "heap/classes.h"
#include "heap/hot.h"

#include <string.h>

/* A live object of a small span: where everything about it is. */
struct dg_slot {
	struct dg_span *span;
	uint64_t *word;
	uint64_t value; /* of the word */
	uint64_t size;
	uint32_t slot;
};

/* True if p is the start of a live small object, allocated through `api`, whose
 * canaries stand; whatever else it is, the slow path says. */
static DG_HOT bool dg_live_slot(uint64_t p, uint32_t api, struct dg_slot *found)
{
	uint64_t off = p - dg_hot.objects, index, word;
	struct dg_span *s;
	uint32_t in;

	if (DG_UNLIKELY(off >= dg_hot.bytes))
		return false;
	s = dg_span(off >> DG_UNIT_SHIFT);
	in = (uint32_t)off & (DG_UNIT - 1);
	if (DG_UNLIKELY(s->kind != DG_SPAN_SMALL)) {
		if (s->kind != DG_SPAN_INTERIOR)
			return false;
		in += s->units << DG_UNIT_SHIFT;
		s -= s->units;
		if (s->kind != DG_SPAN_SMALL)
			return false;
	}
	in -= s->first;
	index = in * s->magic >> 44;
	if (DG_UNLIKELY(index - 1 >= s->carved - 1u))
		/* The first slot, after the front guard, or no slot. */
		if (index || s->first < DG_MIN_CANARY ||
		    !dg_canary_run_stands(dg_span_start(s), dg_span_start(s) + s->first,
					  dg_canary_of((uint64_t *)s->words)))
			return false;
	if (DG_UNLIKELY(index * s->slot != in))
		return false;
	found->span = s;
	found->slot = s->slot;
	found->word = (uint64_t *)s->words + index;
	word = *found->word;
	if (DG_UNLIKELY(word >> DG_WORD_STATE != (DG_LIVE | (uint64_t)api << 2)))
		return false;
	found->value = word;
	found->size = word & DG_SIZE_MASK;
	return DG_LIKELY(dg_canary_stands(p, found->size, s->slot, dg_canary_of(found->word)));
}

static DG_HOT bool dg_ring_full(const struct dg_ring *r)
{
	/* One entry stays empty, so that an unused ring is full. */
	return r->tail - r->head >= r->mask;
}

/* Into a ring with room: word, fill, entry, in this order. */
static DG_HOT void dg_push(struct dg_heap *h, struct dg_ring *r, uint64_t p,
			   const struct dg_slot *found, uint32_t site)
{
	uint32_t tail = r->tail;
	struct dg_freed *e = (struct dg_freed *)r->entries + (tail & r->mask);

	*found->word = dg_with_state(found->value, DG_QUARANTINED);
	DG_ORDER();
	dg_fill(p, dg_filled(found->slot));
	e->object = p;
	e->site = site;
	e->thread = h->thread;
	DG_ORDER();
	r->tail = tail + 1;
	h->frees++;
	h->quarantined += found->slot;
}

static void dg_retire(struct dg_heap *h, uint64_t p, const struct dg_slot *found,
		      const uint64_t *slot)
{
	uint32_t c = found->span->class_;
	struct dg_ring *r = &h->bins[c].ring;

	if (DG_UNLIKELY(dg_ring_full(r)) && !dg_ring_room(h, c, slot)) {
		*found->word = dg_with_state(found->value, DG_QUARANTINED);
		DG_ORDER();
		dg_fill(p, dg_filled(found->slot));
		DG_ORDER();
		*found->word = dg_with_state(found->value, DG_REUSABLE);
		return;
	}
	dg_push(h, r, p, found, dg_site_at(h, slot));
	if (DG_UNLIKELY(h->quarantined > h->budget))
		dg_evict(h, slot);
}

static DG_COLD void dg_release_in(struct dg_heap *h, uint64_t p, uint32_t api, const uint64_t *slot)
{
	struct dg_found f = dg_find(p);
	struct dg_slot found;

	if (!f.word || f.object != p || dg_state(*f.word) != DG_LIVE) {
		dg_bad_pointer(p, DG_AT_FREE, slot);
		return;
	}
	if (f.span->kind == DG_SPAN_LARGE) {
		if (!dg_large_stands(f.span) || (*f.word >> DG_WORD_API & 3) != api)
			dg_judge_live(&f, DG_AT_FREE, api, slot);
		dg_large_free(f.span, dg_site_at(h, slot), h->thread);
		h->frees++;
		return;
	}
	if (!dg_live_slot(p, api, &found)) {
		dg_judge_live(&f, DG_AT_FREE, api, slot);
		found = (struct dg_slot){ f.span, f.word, *f.word, f.size, f.span->slot };
	}
	dg_retire(h, p, &found, slot);
}

static DG_COLD void dg_release_slow(uint64_t p, uint32_t api, const uint64_t *slot)
{
	struct dg_heap *h;

	if (!p)
		return;
	h = dg_enter_slow();
	if (!h)
		return; /* a call that interrupts heap 0's: the object is never reused */
	dg_release_in(h, p, api, slot);
	dg_leave(h);
}

/* The heap being entered: what of a free needs a call. */
static DG_COLD void dg_release_rest(struct dg_heap *h, uint64_t p, uint32_t api,
				    const uint64_t *slot)
{
	dg_release_in(h, p, api, slot);
	dg_leave(h);
}

static DG_COLD void dg_release_over(struct dg_heap *h, const uint64_t *slot)
{
	dg_evict(h, slot);
	dg_leave(h);
}

static DG_HOT void dg_release(void *pointer, uint32_t api, const uint64_t *slot)
{
	uint64_t p = (uint64_t)pointer;
	struct dg_heap *h = dg_self;
	struct dg_slot found;
	struct dg_ring *r;
	uint32_t site;

	if (DG_UNLIKELY(!h || h->busy || !dg_live_slot(p, api, &found))) {
		dg_release_slow(p, api, slot);
		return;
	}
	h->busy = 1;
	DG_ORDER();
	r = &h->bins[found.span->class_].ring;
	site = dg_site_met(slot);
	if (DG_UNLIKELY(!site || dg_ring_full(r))) {
		dg_release_rest(h, p, api, slot);
		return;
	}
	dg_push(h, r, p, &found, site);
	if (DG_UNLIKELY(h->quarantined > h->budget)) {
		dg_release_over(h, slot);
		return;
	}
	DG_ORDER();
	h->busy = 0;
}

/* In place where that wastes no more than half. Canary bytes belong to their
 * addresses: those of the new size may stand beside those of the old one. */
static inline bool dg_resize(struct dg_slot *found, uint64_t p, uint64_t size, uint64_t word)
{
	if (size + DG_MIN_CANARY > found->slot ||
	    (size + DG_MIN_CANARY <= found->slot / 2 && found->slot > 64))
		return false;
	dg_canary_put(p, size, found->slot, dg_canary_of(found->word));
	DG_ORDER();
	*found->word = word | size;
	return true;
}

/* To a new place. */
static void *dg_move(struct dg_heap *h, const struct dg_found *f, uint64_t old, uint64_t size,
		     uint64_t word, const uint64_t *slot)
{
	bool clean;
	void *to;

	if (size <= DG_SMALL_MAX - DG_MIN_CANARY)
		to = dg_take(h, dg_class(size + DG_MIN_CANARY), size, word, slot);
	else if (f->span->kind == DG_SPAN_LARGE && size > old)
		return dg_large_grow(f->span, size, word, slot);
	else
		to = dg_large_new(size, 16, word, slot, &clean);
	return to ? memcpy(to, (const void *)f->object, old < size ? old : size) : NULL;
}

/* As a failing allocation does it. */
static DG_COLD void *dg_move_hard(struct dg_heap *h, const struct dg_found *f, uint64_t old,
				  uint64_t size, uint64_t word, const uint64_t *slot)
{
	void *to = NULL;

	if (size <= DG_OBJECTS_LIMIT && dg_give_way(h, slot))
		to = dg_move(h, f, old, size, word, slot);
	return to ? to : dg_spare_copy(h, f->object, old, size, slot);
}

static void *dg_reallocate_in(struct dg_heap *h, uint64_t p, uint64_t size, const uint64_t *slot)
{
	struct dg_found f = dg_find(p);
	uint64_t word = dg_new_word(h, DG_API_MALLOC, slot), old;
	struct dg_slot found;
	void *to;

	if (!f.word || f.object != p || dg_state(*f.word) != DG_LIVE) {
		dg_bad_pointer(p, DG_AT_REALLOC, slot);
		return NULL;
	}
	/* Sums with larger sizes may overflow. */
	if (size > DG_OBJECTS_LIMIT) {
		dg_failed(h, size, slot);
		return NULL;
	}
	if (f.span->kind == DG_SPAN_LARGE) {
		if (!dg_large_stands(f.span) || *f.word >> DG_WORD_API & 3)
			dg_judge_live(&f, DG_AT_REALLOC, DG_API_MALLOC, slot);
		old = f.size;
		if (size > DG_SMALL_MAX - DG_MIN_CANARY && dg_large_resize(f.span, size, word))
			return (void *)p;
	} else {
		if (!dg_live_slot(p, DG_API_MALLOC, &found)) {
			dg_judge_live(&f, DG_AT_REALLOC, DG_API_MALLOC, slot);
			*f.word &= ~(3ull << DG_WORD_API);
			found = (struct dg_slot){ f.span, f.word, *f.word, f.size, f.span->slot };
		}
		old = found.size;
		if (dg_resize(&found, p, size, word))
			return (void *)p;
	}
	to = dg_move(h, &f, old, size, word, slot);
	if (DG_UNLIKELY(!to))
		to = dg_move_hard(h, &f, old, size, word, slot);
	if (!to) {
		dg_failed(h, size, slot);
		return NULL;
	}
	h->allocations++;
	if (f.span->kind == DG_SPAN_LARGE) {
		dg_large_free(f.span, dg_site_at(h, slot), h->thread);
		h->frees++;
	} else {
		found.value = *f.word;
		dg_retire(h, p, &found, slot);
	}
	return to;
}

static DG_COLD void *dg_reallocate_slow(uint64_t p, uint64_t size, const uint64_t *slot)
{
	struct dg_heap *h = dg_enter_slow();
	uint64_t old = UINT64_MAX;
	struct dg_found f;
	void *to;

	if (!h) {
		f = dg_find(p);
		if (!f.word || f.object != p || dg_state(*f.word) != DG_LIVE)
			return NULL;
		return dg_spare_copy(NULL, p, f.size, size, slot);
	}
	if (DG_UNLIKELY(dg_fresh_byte))
		old = dg_find(p).size;
	to = dg_reallocate_in(h, p, size, slot);
	if (DG_UNLIKELY(dg_fresh_byte) && to && old < size)
		memset((char *)to + old, (int)dg_fresh_byte, size - old);
	dg_leave(h);
	return to;
}

static inline void *dg_reallocate(void *pointer, uint64_t size, const uint64_t *slot)
{
	uint64_t p = (uint64_t)pointer, word;
	struct dg_heap *h = dg_self;
	struct dg_slot found;
	void *to;

	if (DG_UNLIKELY(!h || h->busy || size > dg_hot.fast ||
			!dg_live_slot(p, DG_API_MALLOC, &found)))
		return dg_reallocate_slow(p, size, slot);
	h->busy = 1;
	DG_ORDER();
	word = dg_new_word(h, DG_API_MALLOC, slot);
	to = pointer;
	if (!dg_resize(&found, p, size, word)) {
		to = dg_take(h, dg_class(size + DG_MIN_CANARY), size, word, slot);
		if (to) {
			h->allocations++;
			memcpy(to, pointer, found.size < size ? found.size : size);
			dg_retire(h, p, &found, slot);
		}
	}
	DG_ORDER();
	h->busy = 0;
	return DG_LIKELY(to) ? to : dg_reallocate_slow(p, size, slot);
}
