/* Large objects: a run of units each, an inaccessible page at its end, and the
 * object right before that, so that an overflow faults where it happens. Runs
 * of freed objects keep their guard page and are reused for a similar size. */
#include "agent.h"
#include "syscall.h"

#include <string.h>
#include <sys/mman.h>

/* Each guard page splits a mapping; vm.max_map_count is 65530 by default and
 * the program needs some as well. */
#define DG_GUARDS 15000u
#define DG_LARGE_RING 1024u
#define DG_KEPT_LISTS 192
/* The most that it had in use is forgotten after so many frees. */
#define DG_PEAK_FREES 1024u
/* Larger ones give their memory back when freed, as with glibc, whose
 * threshold for mmap ends there. */
#define DG_TRIM (32ull << 20)
#define DG_LARGE_FRONT 64u /* before an object that may grow */
#define DG_MOVE (256u << 10) /* from here on its pages are moved */
/* Lists of longer runs that are looked through: a quarter longer, and eight
 * times for what grows, which has a use for the room. */
#define DG_REACH 2
#define DG_REACH_GROWING 24

/* Of address space, beyond the live objects: so much may kept runs have. */
#define DG_KEPT_SPACE (1ull << 30)

enum dg_kept_kind {
	DG_WHOLE = 0,    /* with their memory */
	DG_STRIPPED = 1, /* without: all but the filled start was given back */
	DG_KEPT_KINDS = 2,
};

/* Runs of freed objects that left the quarantine: they are still filled. */
static struct {
	uint64_t lists[DG_KEPT_KINDS][DG_KEPT_LISTS];
	uint64_t bytes; /* resident in whole ones, about */
	uint64_t space; /* of address space in all */
	uint64_t live;  /* resident in live ones, about; changes under the lock, for the amount given back follows from it */
	uint64_t peak, recent; /* the most in use, and since it was last forgotten */
	uint32_t frees;
	uint32_t guards;
} dg_kept;

/* Lists of 1, 2, .. 8 units, then eight a doubling. */
static uint32_t dg_kept_list(uint64_t units)
{
	uint32_t log;

	if (units < 8)
		return (uint32_t)units;
	log = 63 - (uint32_t)__builtin_clzll(units);
	return (log - 2) * 8 + (uint32_t)(units >> (log - 3) & 7);
}

static uint64_t dg_run_end(const struct dg_span *s)
{
	return dg_span_start(s) + ((uint64_t)s->units << DG_UNIT_SHIFT);
}

/* The guarded bytes on either side of a large object. */
static uint64_t dg_before(const struct dg_span *s, uint64_t object)
{
	uint64_t start = dg_span_start(s);

	return object - start > DG_LARGE_CANARY ? object - DG_LARGE_CANARY : start;
}

static uint64_t dg_behind(uint64_t object, uint64_t size, uint64_t end)
{
	uint64_t limit = dg_up8(object + size + DG_LARGE_CANARY);

	return limit < end ? limit : end;
}

static bool dg_large_stands(const struct dg_span *s)
{
	uint64_t before = dg_before(s, s->object), k = dg_canary_of_large(s);

	return (before == s->object || dg_canary_run_stands(before, s->object, k)) &&
	       dg_canary_run_stands(s->object + s->size, dg_behind(s->object, s->size, s->end), k);
}

/* Bytes of a run that are resident, about: the size of its largest object. */
static uint64_t *dg_resident(struct dg_span *s)
{
	return &s->reserved[1];
}

/* Of a live object's run. Needs the lock. */
static void dg_resident_set(struct dg_span *s, uint64_t bytes)
{
	dg_kept.live += bytes - *dg_resident(s);
	*dg_resident(s) = bytes;
}

/* The bytes in use by large and small objects. Needs the lock. */
static uint64_t dg_in_use(void)
{
	return dg_kept.live + (dg_super.used << DG_UNIT_SHIFT);
}

static void dg_peak_note(void)
{
	uint64_t use = dg_in_use();

	dg_kept.recent = dg_most(dg_kept.recent, use);
	dg_kept.peak = dg_most(dg_kept.peak, use);
	if (++dg_kept.frees % DG_PEAK_FREES == 0) {
		dg_kept.peak = dg_kept.recent;
		dg_kept.recent = use;
	}
}

/* How much may be kept when `more` bytes come into use: together with the
 * quarantine no more than its budget and what the program had in use before. So
 * its peak is what it would be without us, and large buffers that come and go
 * do not fault in their memory each time. */
static uint64_t dg_kept_bound(uint64_t more)
{
	uint64_t use = dg_in_use() + more, most = dg_most(dg_kept.peak, use);

	most += dg_root->large_budget;
	use += dg_root->large_quarantined;
	return most > use ? most - use : 0;
}

static enum dg_kept_kind dg_kept_kind(struct dg_span *s)
{
	return *dg_resident(s) > DG_PAGE ? DG_WHOLE : DG_STRIPPED;
}

static void dg_kept_add(struct dg_span *s)
{
	enum dg_kept_kind kind = dg_kept_kind(s);

	if (kind == DG_WHOLE)
		dg_kept.bytes += *dg_resident(s);
	dg_kept.space += (uint64_t)s->units << DG_UNIT_SHIFT;
	dg_list_add(&dg_kept.lists[kind][dg_kept_list(s->units)], s);
}

static void dg_kept_remove(struct dg_span *s)
{
	enum dg_kept_kind kind = dg_kept_kind(s);

	if (kind == DG_WHOLE)
		dg_kept.bytes -= *dg_resident(s);
	dg_kept.space -= (uint64_t)s->units << DG_UNIT_SHIFT;
	dg_list_remove(&dg_kept.lists[kind][dg_kept_list(s->units)], s);
}

/* Gives a freed object's memory back; its start, with the fill, stays. */
static void dg_large_strip(struct dg_span *s)
{
	uint64_t rest = (s->object + DG_FILLED(s->size, dg_hot.fill) + DG_PAGE - 1) &
			~(uint64_t)(DG_PAGE - 1);

	if (rest < s->end)
		dg_sys3(SYS_madvise, rest, s->end - rest, MADV_DONTNEED);
}

/* A kept run becomes free units. Needs the lock. */
static void dg_kept_drop(struct dg_span *s)
{
	uint64_t units = s->units, start = dg_span_start(s), i;

	dg_kept_remove(s);
	for (i = 0; i < units; i++)
		s[i].kind = DG_SPAN_NONE;
	if (s->flags & DG_SPAN_GUARDED) {
		dg_sys3(SYS_mprotect, s->end, dg_run_end(s) - s->end, PROT_READ | PROT_WRITE);
		__atomic_fetch_sub(&dg_kept.guards, 1, __ATOMIC_RELAXED);
	}
	dg_sys3(SYS_madvise, start, units << DG_UNIT_SHIFT, MADV_DONTNEED);
	s->flags = 0;
	dg_run_put(dg_span_index(s), units);
}

/* The shortest kept run of a kind with so many bytes, or the longest one. */
static struct dg_span *dg_kept_find(enum dg_kept_kind kind, uint64_t bytes)
{
	struct dg_span *found = NULL;
	uint64_t units = (bytes + DG_UNIT - 1) >> DG_UNIT_SHIFT;
	uint32_t k;

	for (k = dg_kept_list(units); k < DG_KEPT_LISTS; k++)
		if (dg_kept.lists[kind][k])
			return dg_span(dg_kept.lists[kind][k] - 1);
	for (k = dg_kept_list(units); k-- && !found;)
		if (dg_kept.lists[kind][k])
			found = dg_span(dg_kept.lists[kind][k] - 1);
	return found;
}

/* Gives memory back until no more than `bytes` are left, address space until
 * no more than `space`: with few calls, but not much more than is asked. */
static void dg_kept_trim(uint64_t bytes, uint64_t space)
{
	struct dg_span *s;

	while (dg_kept.bytes > bytes && (s = dg_kept_find(DG_WHOLE, dg_kept.bytes - bytes))) {
		dg_kept_remove(s);
		dg_large_strip(s);
		*dg_resident(s) = DG_PAGE;
		dg_kept_add(s);
	}
	while (dg_kept.space > space) {
		s = dg_kept_find(DG_STRIPPED, dg_kept.space - space);
		if (!s)
			s = dg_kept_find(DG_WHOLE, dg_kept.space - space);
		if (!s)
			return;
		dg_kept_drop(s);
	}
}

/* The one to be had that is least longer: how much longer at most, `reach` says,
 * in lists. */
static struct dg_span *dg_kept_take(enum dg_kept_kind kind, uint64_t units, uint32_t reach)
{
	uint32_t k = dg_kept_list(units), last = k + reach;
	struct dg_span *s;
	uint64_t at;

	for (; k <= last && k < DG_KEPT_LISTS; k++) {
		for (at = dg_kept.lists[kind][k]; at; at = s->next) {
			s = dg_span(at - 1);
			if (s->units < units)
				continue;
			dg_kept_remove(s);
			return s;
		}
	}
	return NULL;
}

static void dg_kept_make_room(uint64_t bytes)
{
	if (dg_kept.bytes)
		dg_kept_trim(dg_kept_bound(bytes), UINT64_MAX);
}

/* What a new object asks of its run. */
struct dg_large_wish {
	uint64_t units; /* at least so many */
	uint64_t size;  /* of the object */
	uint64_t touched; /* bytes of it that will be written */
	uint32_t reach;
	/* What came */
	bool cached;
	uint64_t resident; /* bytes of the run that were so before */
};

/* A run without an owner. */
static struct dg_span *dg_large_run(struct dg_large_wish *w)
{
	struct dg_span *s;

	if (!dg_lock())
		return NULL;
	s = dg_kept_take(DG_WHOLE, w->units, w->reach);
	if (!s)
		s = dg_kept_take(DG_STRIPPED, w->units, DG_REACH);
	w->cached = s != NULL;
	if (!s) {
		s = dg_run_take_hard(w->units);
		if (s) {
			s->units = (uint32_t)w->units;
			*dg_resident(s) = 0;
		}
	}
	if (s) {
		w->resident = *dg_resident(s);
		if (w->touched > w->resident)
			dg_kept_make_room(w->touched);
		*dg_resident(s) = dg_most(w->resident, w->size);
		dg_kept.live += *dg_resident(s);
	}
	dg_unlock();
	return s;
}

static void dg_large_guard(struct dg_span *s)
{
	uint64_t end = dg_run_end(s), guard = end - DG_PAGE;
	uint32_t n = __atomic_fetch_add(&dg_kept.guards, 1, __ATOMIC_RELAXED);

	s->end = guard;
	s->flags |= DG_SPAN_GUARDED;
	if (n < DG_GUARDS && !dg_sys3(SYS_mprotect, guard, DG_PAGE, PROT_NONE))
		return;
	__atomic_fetch_sub(&dg_kept.guards, 1, __ATOMIC_RELAXED);
	s->end = end;
	s->flags &= (uint16_t)~DG_SPAN_GUARDED;
}

/* The rest of a span with a live large object, and its canaries. */
static void dg_large_set(struct dg_span *s, uint64_t object, uint64_t size, uint64_t word)
{
	uint64_t before, k = dg_canary_of_large(s);

	s->object = object;
	s->size = size;
	s->class_ = 0;
	s->slots = s->carved = 1;
	s->slot = s->first = s->central = s->heap = 0;
	s->words = (uint64_t)&s->reserved[0];
	s->bitmap = s->magic = s->next = s->prev = 0;
	before = dg_before(s, object);
	if (before != object)
		dg_canary_run(before, object, k);
	dg_canary_run(object + size, dg_behind(object, size, s->end), k);
	DG_ORDER();
	s->reserved[0] = word;
	s->kind = DG_SPAN_LARGE;
}

/* A run for so many bytes, without an owner yet: its flags say whether it is clean. */
static struct dg_span *dg_large_get(uint64_t bytes, struct dg_large_wish *w, const uint64_t *slot, bool *clean)
{
	struct dg_span *s;

	w->units = (bytes + DG_UNIT - 1) >> DG_UNIT_SHIFT;
	s = dg_large_run(w);
	if (!s)
		return NULL;
	*clean = !w->cached && s->flags & DG_SPAN_CLEAN;
	if (w->cached) {
		struct dg_freed freed = { s->object, s->free_site, s->free_thread };

		if (!dg_fill_stands(s->object, DG_FILLED(s->size, dg_hot.fill)))
			dg_report_fill(s->object, s->reserved, &freed, DG_AT_EVICTION, slot);
		s->reserved[0] = 0;
		s->kind = DG_SPAN_NONE;
	} else {
		s->flags = 0;
		dg_interior(s, s->units);
		dg_large_guard(s);
	}
	return s;
}

/* *clean says that its memory is zero. */
static DG_COLD void *dg_large_new(uint64_t size, uint64_t align, uint64_t word,
				  const uint64_t *slot, bool *clean)
{
	struct dg_large_wish w = { .size = size, .touched = size, .reach = DG_REACH };
	struct dg_span *s;

	if (size > DG_OBJECTS_LIMIT || align > DG_OBJECTS_LIMIT)
		return NULL;
	s = dg_large_get(size + DG_MIN_CANARY + DG_PAGE + align, &w, slot, clean);
	if (!s)
		return NULL;
	dg_large_set(s, (s->end - DG_MIN_CANARY - size) & -align, size, word);
	return (void *)s->object;
}

/* Moves the pages of an object, as copying it would touch as many again; the
 * old place gets fresh ones. False if the kernel will not. */
static bool dg_large_pages(uint64_t from, uint64_t to, uint64_t bytes)
{
	if (dg_sys(SYS_mremap, (long)from, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (long)to, 0) != (long)to)
		return false;
	/* Nothing else can have taken the place but by mapping at random: then it
	 * is theirs, and the run must never be used again. */
	if (dg_map_at(from, bytes))
		return false;
	dg_objects_mapped(from, bytes);
	return true;
}

/* The object grown to another run with room for half as much again, so that
 * growing costs a constant a byte. The old run is left to be freed. */
static DG_COLD void *dg_large_grow(struct dg_span *old, uint64_t size, uint64_t word,
				   const uint64_t *slot)
{
	uint64_t page = old->object & ~(uint64_t)(DG_PAGE - 1), in = old->object - page, bytes;
	struct dg_large_wish w = {
		.size = size,
		.touched = old->size < DG_MOVE ? size : size - old->size,
		.reach = DG_REACH_GROWING,
	};
	struct dg_span *s;
	bool clean;

	if (size > DG_OBJECTS_LIMIT / 2)
		return NULL;
	s = dg_large_get(size + size / 2 + DG_MIN_CANARY + 3 * DG_PAGE, &w, slot, &clean);
	if (!s)
		return NULL;
	bytes = (in + old->size + DG_PAGE - 1) & ~(uint64_t)(DG_PAGE - 1);
	if (in < DG_LARGE_FRONT)
		in += DG_LARGE_FRONT; /* something is to stand before it */
	/* Its canary may go with its pages: from here on it is not checked. */
	old->reserved[0] = dg_with_state(old->reserved[0], DG_QUARANTINED);
	DG_ORDER();
	if (old->size >= DG_MOVE && w.resident < old->size && in == old->object - page &&
	    dg_large_pages(page, dg_span_start(s), bytes)) {
		if (dg_lock()) {
			dg_resident_set(old, dg_most(*dg_resident(old) - old->size, DG_PAGE));
			dg_unlock();
		}
	} else {
		memcpy((void *)(dg_span_start(s) + in), (const void *)old->object, old->size);
	}
	dg_large_set(s, dg_span_start(s) + in, size, word);
	return (void *)s->object;
}

/* The oldest of the quarantine goes to the cache. Needs the lock. */
static void dg_large_evict(void)
{
	struct dg_ring *r = &dg_root->large;
	struct dg_freed *e = &((struct dg_freed *)r->entries)[r->head & r->mask];
	struct dg_span *s = dg_span_of(e->object);

	s->reserved[0] = dg_with_state(s->reserved[0], DG_REUSABLE);
	DG_ORDER();
	r->head++;
	dg_root->large_quarantined -= s->size;
	dg_kept_add(s);
}

static DG_COLD bool dg_large_yield(void)
{
	struct dg_ring *r = &dg_root->large;

	while (r->tail != r->head)
		dg_large_evict();
	if (!dg_kept.space)
		return false;
	dg_kept_trim(0, 0);
	return true;
}

static void dg_large_push(struct dg_span *s, bool stripped)
{
	struct dg_ring *r = &dg_root->large;

	if (!dg_lock())
		return; /* an interrupted call has it: the run is not reused */
	if (stripped)
		dg_resident_set(s, DG_PAGE);
	dg_peak_note();
	dg_kept.live -= *dg_resident(s);
	if (!r->entries) {
		r->entries = (uint64_t)dg_meta(DG_LARGE_RING * sizeof(struct dg_freed), 64);
		r->mask = r->entries ? DG_LARGE_RING - 1 : 0;
	}
	if (r->entries) {
		if (r->tail - r->head > r->mask)
			dg_large_evict();
		((struct dg_freed *)r->entries)[r->tail & r->mask] =
			(struct dg_freed){ s->object, s->free_site, s->free_thread };
		DG_ORDER();
		r->tail++;
		dg_root->large_quarantined += s->size;
		while (dg_root->large_quarantined > dg_root->large_budget && r->tail != r->head)
			dg_large_evict();
	} else {
		s->reserved[0] = dg_with_state(s->reserved[0], DG_REUSABLE);
		dg_kept_add(s);
	}
	dg_kept_trim(dg_kept_bound(0), DG_KEPT_SPACE + dg_kept.live);
	dg_unlock();
}

/* Frees a live large object whose canaries were judged already. */
static void dg_large_free(struct dg_span *s, uint32_t site, uint32_t thread)
{
	s->reserved[0] = dg_with_state(s->reserved[0], DG_QUARANTINED);
	s->free_site = site;
	s->free_thread = thread;
	DG_ORDER();
	dg_fill(s->object, DG_FILLED(s->size, dg_hot.fill));
	DG_ORDER();
	s->kind = DG_SPAN_FREED;
	if (s->size > DG_TRIM)
		dg_large_strip(s);
	dg_large_push(s, s->size > DG_TRIM);
}

/* In place, if the run has the room and is not wasted. */
static bool dg_large_resize(struct dg_span *s, uint64_t size, uint64_t word)
{
	if (s->object + size + DG_MIN_CANARY > s->end || size < s->size / 2)
		return false;
	dg_canary_run(s->object + size, dg_behind(s->object, size, s->end), dg_canary_of_large(s));
	DG_ORDER();
	s->size = size;
	s->reserved[0] = word;
	if (size > *dg_resident(s) && dg_lock()) {
		dg_kept_make_room(size - *dg_resident(s));
		dg_resident_set(s, size);
		dg_unlock();
	}
	return true;
}
