/* Rings of freed objects: what enters, what leaves, and the check of the fill
 * when it leaves. */
#include "agent.h"
#include "heap/classes.h"

#include <string.h>

#define DG_RING_FIRST 64u
#define DG_RING_LAST 4096u
#define DG_RING_SIZES 7

static uint64_t dg_spare_rings[DG_RING_SIZES]; /* outgrown ones; under the lock */

static inline uint64_t dg_state(uint64_t word)
{
	return word >> DG_WORD_STATE & 3;
}

static inline uint64_t dg_with_state(uint64_t word, uint64_t state)
{
	return (word & ~(3ull << DG_WORD_STATE)) | state << DG_WORD_STATE;
}

/* The fill of a freed object does not stand: says so once. */
static DG_COLD void dg_report_fill(uint64_t object, uint64_t *word, const struct dg_freed *freed,
				   uint32_t when, const uint64_t *slot)
{
	struct dg_span *s = dg_span_of(object);
	struct dg_error e;
	bool small = s->kind == DG_SPAN_SMALL;
	uint64_t size = small ? *word & DG_SIZE_MASK : s->size;

	if (*word >> DG_WORD_REPORTED & 1)
		return;
	memset(&e, 0, sizeof(e));
	if (!dg_damage(object, object + (small ? dg_filled(s->slot) : DG_FILLED(size, dg_hot.fill)),
		       DG_FILL_WORD(dg_hot.objects, object), &e.damage, &e.damage_end))
		return;
	e.kind = DG_ERROR_USE_AFTER_FREE;
	e.when = when;
	e.word_valid = 1;
	e.object = object;
	e.size = size;
	e.word = *word;
	e.slot = object;
	e.slot_end = small ? object + s->slot : s->end;
	if (freed) {
		e.free_site = freed->site;
		e.free_thread = freed->thread;
	}
	*word |= 1ull << DG_WORD_REPORTED;
	dg_error(&e, slot);
}

static void *dg_ring_memory(uint32_t entries)
{
	uint32_t k = (uint32_t)__builtin_ctz(entries / DG_RING_FIRST);
	uint64_t at = dg_spare_rings[k];

	if (!at)
		return dg_meta(entries * sizeof(struct dg_freed), 64);
	dg_spare_rings[k] = *(uint64_t *)at;
	return (void *)at;
}

/* A ring twice as large. Its entries are there before the ring says so. */
static DG_COLD bool dg_ring_grow(struct dg_ring *r)
{
	uint32_t old = r->entries ? r->mask + 1 : 0, size = old ? old * 2 : DG_RING_FIRST, i;
	struct dg_freed *from = (struct dg_freed *)r->entries, *to;

	if (size > DG_RING_LAST || !dg_lock())
		return false;
	to = dg_ring_memory(size);
	if (to) {
		for (i = r->head; i != r->tail; i++)
			to[i & (size - 1)] = from[i & r->mask];
		DG_ORDER();
		r->entries = (uint64_t)to;
		DG_ORDER();
		r->mask = size - 1;
		if (old) {
			uint32_t k = (uint32_t)__builtin_ctz(old / DG_RING_FIRST);

			*(uint64_t *)from = dg_spare_rings[k];
			dg_spare_rings[k] = (uint64_t)from;
		}
	}
	dg_unlock();
	return to != NULL;
}

/* Moves the oldest objects of a ring to the super-heap. */
static void dg_evict_from(struct dg_heap *h, uint32_t c, uint32_t n, const uint64_t *slot)
{
	struct dg_bin *bin = &h->bins[c];
	struct dg_freed *entries = (struct dg_freed *)bin->ring.entries, *e;
	uint64_t objects[DG_BATCH], *word;
	uint32_t i;

	for (i = 0; i < n; i++) {
		e = &entries[bin->ring.head & bin->ring.mask];
		word = dg_word_of(e->object);
		if (DG_UNLIKELY(!dg_fill_stands(e->object, dg_filled(bin->slot))))
			dg_report_fill(e->object, word, e, DG_AT_EVICTION, slot);
		*word = dg_with_state(*word, DG_REUSABLE);
		DG_ORDER();
		bin->ring.head++;
		objects[i] = e->object;
	}
	h->quarantined -= (uint64_t)n * bin->slot;
	if (!dg_lock())
		return; /* an interrupted call has it: these stay reusable, and are never reused */
	for (i = 0; i < n; i++) {
		struct dg_span *s = dg_span_of(objects[i]);

		dg_waiting_put(s, dg_slot_index(s, objects[i]));
	}
	dg_unlock();
}

/* The class with most bytes in quarantine. */
static uint32_t dg_victim(const struct dg_heap *h)
{
	uint64_t most = 0, bytes;
	uint32_t c, found = 0;

	for (c = 0; c < DG_CLASSES; c++) {
		const struct dg_bin *bin = &h->bins[c];

		bytes = (uint64_t)(bin->ring.tail - bin->ring.head) * bin->slot;
		if (bytes > most) {
			most = bytes;
			found = c;
		}
	}
	return found;
}

/* Brings a heap back into its budget. */
static DG_COLD void dg_evict(struct dg_heap *h, const uint64_t *slot)
{
	if (dg_interrupts())
		return; /* they would be lost, and the next call does it */
	while (h->quarantined > h->budget) {
		uint32_t c = dg_victim(h), count = h->bins[c].ring.tail - h->bins[c].ring.head;

		if (!count)
			return;
		dg_evict_from(h, c, count < DG_BATCH ? (count + 1) / 2 : DG_BATCH, slot);
	}
	dg_check_due();
}

/* Makes room in a full ring; false only when an interrupted call of this
 * thread holds the lock, or memory has run out with an empty ring. */
static DG_COLD bool dg_ring_room(struct dg_heap *h, uint32_t c, const uint64_t *slot)
{
	struct dg_ring *r = &h->bins[c].ring;
	uint32_t count = r->tail - r->head;

	if (dg_ring_grow(r))
		return true;
	if (!count || dg_interrupts())
		return false;
	dg_evict_from(h, c, count < DG_BATCH ? count : DG_BATCH, slot);
	return true;
}
