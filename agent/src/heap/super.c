/* The super-heap: runs of units, spans of slots made from them, and the
 * reusable slots that wait in spans. Everything here needs the lock. */
#include "agent.h"
#include "heap/hot.h"
#include "heap/classes.h"
#include "syscall.h"

#include <errno.h>
#include <string.h>

#define DG_RUN_LISTS 65 /* of n units each; the last has all longer ones */
/* Flags of a free run's first and last unit; in the last one `carved` has the
 * length. */
#define DG_RUN_HEAD 0x100u
#define DG_RUN_TAIL 0x200u
#define DG_SPAN_CLEAN 0x400u /* its memory was never used */
#define DG_LOST_TRIES 1024
/* So much of the objects' window never is in huge pages: each class's span is
 * touched at its start only, which with 2 MiB at a time would be all of it. In
 * larger ones that is a small part, and huge pages make it faster. */
#define DG_SMALL_PAGES (32ull << 20)

static struct {
	uint64_t runs[DG_RUN_LISTS];  /* free runs: index plus one of the first */
	uint64_t waiting[DG_CLASSES]; /* spans with waiting slots */
	uint64_t words[DG_CLASSES];   /* words of spans that are no more, chained through the first */
	uint64_t top;                 /* units from here to the boundary were never used */
	uint64_t used;                /* units of spans of slots */
} dg_super;

static inline struct dg_span *dg_span(uint64_t index)
{
	return &dg_hot.spans[index];
}

static inline uint64_t dg_span_index(const struct dg_span *s)
{
	return (uint64_t)(s - dg_hot.spans);
}

static inline uint64_t dg_span_start(const struct dg_span *s)
{
	return dg_hot.objects + (dg_span_index(s) << DG_UNIT_SHIFT);
}

static void dg_list_add(uint64_t *head, struct dg_span *s)
{
	s->prev = 0;
	s->next = *head;
	if (*head)
		dg_span(*head - 1)->prev = dg_span_index(s) + 1;
	*head = dg_span_index(s) + 1;
}

static void dg_list_remove(uint64_t *head, struct dg_span *s)
{
	if (s->prev)
		dg_span(s->prev - 1)->next = s->next;
	else
		*head = s->next;
	if (s->next)
		dg_span(s->next - 1)->prev = s->prev;
	s->next = s->prev = 0;
}

static uint64_t *dg_run_list(uint64_t units)
{
	return &dg_super.runs[units < DG_RUN_LISTS ? units - 1 : DG_RUN_LISTS - 1];
}

static void dg_run_remove(struct dg_span *s)
{
	struct dg_span *last = s + s->units - 1;

	dg_list_remove(dg_run_list(s->units), s);
	last->flags = 0;
	last->carved = 0;
	s->flags = 0;
	s->units = 0;
}

/* Gives units back, joined with the free runs on either side. */
static void dg_run_put(uint64_t index, uint64_t units)
{
	struct dg_span *s = dg_span(index), *next;

	if (index && s[-1].flags & DG_RUN_TAIL) {
		uint64_t before = s[-1].carved;

		dg_run_remove(s - before);
		s -= before;
		units += before;
	}
	next = s + units;
	if (dg_span_index(next) < dg_super.top && next->flags & DG_RUN_HEAD) {
		uint64_t behind = next->units;

		dg_run_remove(next);
		units += behind;
	}
	s->kind = DG_SPAN_NONE;
	s->units = (uint32_t)units;
	s->flags |= DG_RUN_HEAD;
	s[units - 1].flags |= DG_RUN_TAIL;
	s[units - 1].carved = (uint32_t)units;
	dg_list_add(dg_run_list(units), s);
}

static void dg_objects_mapped(uint64_t at, uint64_t bytes)
{
	if (at - dg_hot.objects < DG_SMALL_PAGES)
		dg_small_pages(at, bytes);
}

/* Maps more after the boundary. Where other memory is in the way,
 * the rest before it becomes a free run, and the search continues after. */
static bool dg_extend(uint64_t bytes)
{
	struct dg_window *w = &dg_root->objects;
	uint64_t left, end, step = (uint64_t)DG_BLOCK_UNITS << DG_UNIT_SHIFT;
	long err;
	int tries;

	for (tries = 0; tries < DG_LOST_TRIES; tries++) {
		if (w->mapped + bytes > DG_OBJECTS_LIMIT)
			return false;
		end = w->mapped + bytes;
		if (!dg_reserve(&dg_root->spans,
				((end >> DG_UNIT_SHIFT) + 1) * sizeof(struct dg_span), 1u << 18))
			return false;
		err = dg_map_at(w->start + w->mapped, bytes);
		if (!err) {
			dg_objects_mapped(w->start + w->mapped, bytes);
			w->mapped += bytes;
			w->used = w->mapped;
			dg_root->spans.used = w->mapped >> DG_UNIT_SHIFT;
			dg_root->boundary = w->start + w->mapped;
			dg_hot.bytes = w->mapped;
			return true;
		}
		if (err != -EEXIST)
			return false;
		left = (w->mapped >> DG_UNIT_SHIFT) - dg_super.top;
		w->mapped += step;
		dg_super.top = w->mapped >> DG_UNIT_SHIFT;
		if (left)
			dg_run_put(dg_super.top - DG_BLOCK_UNITS - left, left);
		dg_root->lost++;
	}
	return false;
}

/* Never used units from the top. */
static bool dg_top_take(uint64_t units, uint64_t *index)
{
	uint64_t step = (uint64_t)DG_BLOCK_UNITS << DG_UNIT_SHIFT, have, lack;

	have = (dg_root->objects.mapped >> DG_UNIT_SHIFT) - dg_super.top;
	if (units > have) {
		lack = (units - have) << DG_UNIT_SHIFT;
		if (!(lack < step && dg_extend(step)) && !dg_extend(lack))
			return false;
		/* The extension may follow other memory. */
		have = (dg_root->objects.mapped >> DG_UNIT_SHIFT) - dg_super.top;
		if (units > have && !dg_extend((units - have) << DG_UNIT_SHIFT))
			return false;
		if (units > (dg_root->objects.mapped >> DG_UNIT_SHIFT) - dg_super.top)
			return false;
	}
	*index = dg_super.top;
	dg_super.top += units;
	return true;
}

static struct dg_span *dg_run_find(uint64_t units)
{
	uint64_t n, at;

	for (n = units; n < DG_RUN_LISTS; n++)
		if (dg_super.runs[n - 1])
			return dg_span(dg_super.runs[n - 1] - 1);
	for (at = dg_super.runs[DG_RUN_LISTS - 1]; at; at = dg_span(at - 1)->next)
		if (dg_span(at - 1)->units >= units)
			return dg_span(at - 1);
	return NULL;
}

/* A run of units, used memory first; its spans' fields are to be set. */
static struct dg_span *dg_run_take(uint64_t units)
{
	struct dg_span *s = dg_run_find(units);
	uint64_t index, have;

	if (!s) {
		if (!dg_top_take(units, &index))
			return NULL;
		s = dg_span(index);
		s->flags = DG_SPAN_CLEAN;
		return s;
	}
	have = s->units;
	dg_run_remove(s);
	if (have > units)
		dg_run_put(dg_span_index(s) + units, have - units);
	return s;
}

/* large.c: gives up the kept freed large objects; false if there was
 * nothing. */
static DG_COLD bool dg_large_yield(void);

/* large.c: so many bytes, never used before, come into use. */
static void dg_kept_make_room(uint64_t bytes);

/* Evidence of freed objects is worth less than the program's next object. */
static struct dg_span *dg_run_take_hard(uint64_t units)
{
	struct dg_span *s = dg_run_take(units);

	if (!s && dg_large_yield())
		s = dg_run_take(units);
	return s;
}

static void dg_interior(struct dg_span *s, uint64_t units)
{
	uint64_t i;

	for (i = 1; i < units; i++) {
		s[i].units = (uint32_t)i;
		s[i].flags = 0;
		s[i].kind = DG_SPAN_INTERIOR;
	}
}

/* Where all address space that may be had (RLIMIT_AS) is in free runs, one of
 * them goes back to the kernel to make room for metadata. */
static DG_COLD uint64_t dg_words_hard(uint64_t bytes)
{
	struct dg_span *s = dg_run_take_hard(1);

	if (!s)
		return 0;
	s->flags = 0;
	s->units = 0;
	dg_sys2(SYS_munmap, dg_span_start(s), DG_UNIT);
	return (uint64_t)dg_meta(bytes, 8);
}

/* Words and bitmap for a span of this class, zeroed. */
static uint64_t dg_words_take(uint32_t c, uint32_t slots)
{
	uint64_t bytes = slots * 8ull + (slots + 63) / 64 * 8ull, at = dg_super.words[c];

	if (!at) {
		at = (uint64_t)dg_meta(bytes, 8);
		return at ? at : dg_words_hard(bytes);
	}
	dg_super.words[c] = *(uint64_t *)at;
	memset((void *)at, 0, bytes);
	return at;
}

static struct dg_span *dg_span_new(uint32_t heap, uint32_t c)
{
	uint32_t slot = dg_class_slot(c), first = dg_class_align(slot);
	uint32_t units = dg_class_units(slot), slots = (units * DG_UNIT - first) / slot;
	uint64_t words = dg_words_take(c, slots);
	struct dg_span *s;

	if (!words)
		return NULL;
	s = dg_run_take_hard(units);
	if (!s) {
		*(uint64_t *)words = dg_super.words[c];
		dg_super.words[c] = words;
		return NULL;
	}
	if (s->flags & DG_SPAN_CLEAN)
		dg_kept_make_room((uint64_t)units << DG_UNIT_SHIFT);
	dg_super.used += units;
	s->class_ = (uint8_t)c;
	s->units = units;
	s->slot = slot;
	s->first = first;
	s->slots = slots;
	s->carved = slots;
	s->heap = heap;
	s->central = 0;
	s->magic = dg_class_magic(slot);
	s->words = words;
	s->bitmap = words + slots * 8ull;
	s->object = s->size = s->end = s->next = s->prev = 0;
	dg_canary_run(dg_span_start(s), dg_span_start(s) + first, dg_canary_of((uint64_t *)words));
	dg_interior(s, units);
	DG_ORDER();
	s->kind = DG_SPAN_SMALL;
	return s;
}

/* All its slots wait: back to the runs of units. */
static void dg_span_dissolve(struct dg_span *s)
{
	uint32_t units = s->units, c = s->class_, i;

	dg_list_remove(&dg_super.waiting[c], s);
	dg_super.used -= units;
	for (i = 0; i < units; i++)
		s[i].kind = DG_SPAN_NONE;
	DG_ORDER();
	*(uint64_t *)s->words = dg_super.words[c];
	dg_super.words[c] = s->words;
	s->flags = 0;
	dg_run_put(dg_span_index(s), units);
}

/* The word of a live or freed small object. */
static DG_HOT uint64_t *dg_word_of(uint64_t object)
{
	uint64_t off = object - dg_hot.objects, in = off & (DG_UNIT - 1);
	struct dg_span *s = dg_span(off >> DG_UNIT_SHIFT);

	if (DG_UNLIKELY(s->kind == DG_SPAN_INTERIOR)) {
		in += (uint64_t)s->units << DG_UNIT_SHIFT;
		s -= s->units;
	}
	return (uint64_t *)s->words + ((in - s->first) * s->magic >> 44);
}

static inline uint32_t dg_slot_index(const struct dg_span *s, uint64_t object)
{
	return (uint32_t)((object - dg_span_start(s) - s->first) * s->magic >> 44);
}

/* The span of an address inside the objects' window. */
static inline struct dg_span *dg_span_of(uint64_t at)
{
	struct dg_span *s = dg_span((at - dg_hot.objects) >> DG_UNIT_SHIFT);

	if (DG_UNLIKELY(s->kind == DG_SPAN_INTERIOR))
		s -= s->units;
	return s;
}

static void dg_waiting_put(struct dg_span *s, uint32_t slot)
{
	((uint64_t *)s->bitmap)[slot / 64] |= 1ull << slot % 64;
	if (s->central++ == 0)
		dg_list_add(&dg_super.waiting[s->class_], s);
	/* One such span is kept: otherwise it might come and go with each batch. */
	if (s->central == s->slots && (s->next || s->prev))
		dg_span_dissolve(s);
}

/* What a heap fetches in one go is lost to the others. */
#define DG_BATCH_BYTES 8192u

/* Takes up to `limit` waiting slots of a class, so that row[n-1] is the lowest
 * address of the first span. */
static uint32_t dg_waiting_take(uint32_t c, uint64_t *row, uint32_t limit)
{
	uint32_t few = DG_BATCH_BYTES / dg_class_slot(c);
	uint64_t *bits, base, swap;
	struct dg_span *s;
	uint32_t n = 0, i, k;

	if (few < limit)
		limit = few ? few : 1;
	while (n < limit && dg_super.waiting[c]) {
		s = dg_span(dg_super.waiting[c] - 1);
		bits = (uint64_t *)s->bitmap;
		base = dg_span_start(s) + s->first;
		for (i = 0; n < limit && s->central; i++) {
			for (; bits[i] && n < limit; n++) {
				k = (uint32_t)__builtin_ctzll(bits[i]);
				bits[i] &= bits[i] - 1;
				s->central--;
				row[n] = base + (i * 64ull + k) * s->slot;
			}
		}
		if (!s->central)
			dg_list_remove(&dg_super.waiting[c], s);
	}
	for (i = 0; i < n / 2; i++) {
		swap = row[i];
		row[i] = row[n - 1 - i];
		row[n - 1 - i] = swap;
	}
	return n;
}
