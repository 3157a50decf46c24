/* A last resort for calls that find the thread's heap, heap 0 or the
 * super-heap in the hands of code that they interrupted: spans set aside, whose
 * slots are handed out by atomic counters and freed like all others. */
#include "agent.h"
#include "heap/classes.h"
#include "heap/hot.h"

#include <string.h>

#define DG_SPARES 3

static const uint32_t dg_spare_slots[DG_SPARES] = { 256, 1024, 8192 };
/* The span's index plus one, and below it the number of slots handed out: one
 * word, so that both change together. */
static uint64_t dg_spares[DG_SPARES];
static bool dg_spare_lacks = true;

static struct dg_span *dg_spare_span(uint64_t spare)
{
	return dg_span((spare >> 32) - 1);
}

static bool dg_spare_low(uint64_t spare)
{
	return !spare || (uint32_t)spare >= dg_spare_span(spare)->slots * 3 / 4;
}

/* Needs the lock. If there is no memory, it is tried again when another span is
 * made, not at each turn. */
static DG_COLD void dg_spare_provide(void)
{
	struct dg_span *s;

	__atomic_store_n(&dg_spare_lacks, false, __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < DG_SPARES; k++) {
		if (!dg_spare_low(__atomic_load_n(&dg_spares[k], __ATOMIC_RELAXED)))
			continue;
		s = dg_span_new(0, dg_class(dg_spare_slots[k]));
		if (!s)
			return;
		/* The rest of the old one's few slots is never handed out. */
		__atomic_store_n(&dg_spares[k], (dg_span_index(s) + 1) << 32, __ATOMIC_RELEASE);
	}
}

static void *dg_spare_from(uint64_t *spare, uint64_t size, uint64_t align, uint64_t word)
{
	uint64_t seen = __atomic_load_n(spare, __ATOMIC_ACQUIRE), object, *w;
	struct dg_span *s;

	do {
		if (!seen)
			return NULL;
		s = dg_spare_span(seen);
		if (size + DG_MIN_CANARY > s->slot || align > s->first || (uint32_t)seen >= s->slots)
			return NULL;
	} while (!__atomic_compare_exchange_n(spare, &seen, seen + 1, false, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	if (dg_spare_low(seen))
		__atomic_store_n(&dg_spare_lacks, true, __ATOMIC_RELAXED);
	object = dg_span_start(s) + s->first + (uint64_t)(uint32_t)seen * s->slot;
	w = (uint64_t *)s->words + (uint32_t)seen;
	dg_canary_put(object, size, s->slot, dg_canary_of(w));
	DG_ORDER();
	*w = word | size;
	return (void *)object;
}

/* heap.c */
static DG_HOT void *dg_pop(struct dg_heap *h, struct dg_bin *bin, uint64_t size, uint64_t word,
			   const uint64_t *report);

/* Of the heap that was entered: a spare slot that was freed. A handler that
 * comes again and again before the lock's holder gets on would use up all. */
static void *dg_spare_again(struct dg_heap *h, uint32_t k, uint64_t size, uint64_t align,
			    uint64_t word, const uint64_t *slot)
{
	struct dg_bin *bin = &h->bins[dg_class(dg_spare_slots[k])];

	if (size + DG_MIN_CANARY > bin->slot || align > dg_class_align(bin->slot) ||
	    bin->ring.head == bin->ring.tail)
		return NULL;
	return dg_pop(h, bin, size, word, slot);
}

/* Where spare slots are freed to when no ring can be had. */
static bool dg_spare_start(void)
{
	for (uint32_t k = 0; k < DG_SPARES; k++)
		if (!dg_ring_grow(&dg_hot.shared->bins[dg_class(dg_spare_slots[k])].ring))
			return false;
	return true;
}

/* h is the heap that was entered, or NULL. */
static DG_COLD void *dg_spare(struct dg_heap *h, uint64_t size, uint64_t align, uint32_t api,
			      const uint64_t *slot)
{
	uint64_t word = (uint64_t)DG_LIVE << DG_WORD_STATE | (uint64_t)api << DG_WORD_API |
			(uint64_t)dg_number << DG_WORD_THREAD |
			(uint64_t)dg_site_met(slot) << DG_WORD_SITE;
	void *p = NULL;

	if (size > DG_SMALL_MAX)
		return NULL;
	for (uint32_t k = 0; k < DG_SPARES && !p; k++)
		p = dg_spare_from(&dg_spares[k], size, align, word);
	for (uint32_t k = 0; k < DG_SPARES && !p && h; k++)
		p = dg_spare_again(h, k, size, align, word, slot);
	return p;
}

/* A live object's contents in a spare slot; the object itself is lost, as a
 * free is that finds all in the hands of code that it interrupted. */
static DG_COLD void *dg_spare_copy(struct dg_heap *h, uint64_t object, uint64_t old, uint64_t size,
				   const uint64_t *slot)
{
	void *to = dg_spare(h, size, 16, DG_API_MALLOC, slot);

	return to ? memcpy(to, (const void *)object, old < size ? old : size) : NULL;
}

/* What a heap holds of freed objects goes to the super-heap, where its memory
 * may become anything. */
static bool dg_give_all(struct dg_heap *h, const uint64_t *slot)
{
	uint64_t *rows = (uint64_t *)h->waiting, object;
	bool any = h->quarantined != 0;
	uint32_t c, count;

	for (c = 0; c < DG_CLASSES; c++)
		while ((count = h->bins[c].ring.tail - h->bins[c].ring.head))
			dg_evict_from(h, c, count < DG_BATCH ? count : DG_BATCH, slot);
	if (!dg_lock())
		return any;
	for (c = 0; c < DG_CLASSES; c++)
		while (h->bins[c].waiting) {
			object = rows[c * DG_BATCH + --h->bins[c].waiting];
			dg_waiting_put(dg_span_of(object), dg_slot_index(dg_span_of(object), object));
			any = true;
		}
	dg_unlock();
	return any;
}

static void dg_return_idle(struct dg_heap *h)
{
	uint32_t i = (uint32_t)(h - dg_heap_number(0));

	if (!dg_lock())
		return;
	h->state = DG_HEAP_IDLE;
	if (i < dg_heap_hint)
		dg_heap_hint = i;
	dg_unlock();
}

/* The lowest heap from i on that has no thread, as if it had this one. */
static struct dg_heap *dg_borrow_idle(uint64_t *i)
{
	struct dg_heap *h = NULL;

	if (!dg_lock())
		return NULL;
	for (; *i < dg_root->heaps.used; ++*i)
		if (dg_heap_number(*i)->state == DG_HEAP_IDLE) {
			h = dg_heap_number((*i)++);
			h->state = DG_HEAP_OWNED;
			break;
		}
	dg_unlock();
	return h;
}

/* Before an allocation fails: this heap's freed objects give way, and those of
 * threads that ended. Evidence is worth less than the program's next object.
 * False if there was nothing, or if it cannot be done here. */
static DG_COLD bool dg_give_way(struct dg_heap *h, const uint64_t *slot)
{
	struct dg_heap *idle;
	uint64_t i = 1;
	bool any;

	/* Evicted without the lock, objects would be lost. */
	if (!dg_lock())
		return false;
	dg_unlock();
	any = dg_give_all(h, slot);
	while ((idle = dg_borrow_idle(&i))) {
		any |= dg_give_all(idle, slot);
		dg_return_idle(idle);
	}
	return any;
}
