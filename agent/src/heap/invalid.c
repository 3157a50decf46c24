/* Frees that are not simply right: damaged canaries, mismatched interfaces,
 * and pointers to no live object. */
#include "agent.h"
#include "heap/classes.h"
#include "heap/hot.h"
#include "syscall.h"

#include <errno.h>
#include <link.h>
#include <string.h>

/* The object at a pointer given to free. */
struct dg_found {
	struct dg_span *span;
	uint64_t object, size;
	uint64_t *word; /* NULL: no object */
	uint64_t slot, slot_end;
};

static struct dg_found dg_find(uint64_t p)
{
	struct dg_found f;
	uint32_t i;

	memset(&f, 0, sizeof(f));
	if (p - dg_hot.objects >= dg_hot.bytes)
		return f;
	f.span = dg_span_of(p);
	if (f.span->kind == DG_SPAN_LARGE || f.span->kind == DG_SPAN_FREED) {
		f.word = f.span->reserved;
		f.object = f.span->object;
		f.size = f.span->size;
		f.slot = dg_span_start(f.span);
		f.slot_end = f.span->end;
	} else if (f.span->kind == DG_SPAN_SMALL && p >= dg_span_start(f.span) + f.span->first) {
		i = dg_slot_index(f.span, p);
		if (i >= f.span->carved)
			return f;
		f.word = (uint64_t *)f.span->words + i;
		f.object = dg_span_start(f.span) + f.span->first + (uint64_t)i * f.span->slot;
		f.size = *f.word & DG_SIZE_MASK;
		f.slot = f.object;
		f.slot_end = f.object + f.span->slot;
	}
	if (f.word && !*f.word)
		f.word = NULL; /* never handed out */
	return f;
}

static void dg_describe(struct dg_error *e, const struct dg_found *f)
{
	e->word_valid = 1;
	e->object = f->object;
	e->size = f->size;
	e->word = *f->word;
	e->slot = f->slot;
	e->slot_end = f->slot_end;
}

/* Who freed an object: known while it is in a ring, and always of a large one.
 * Other threads' rings are read while they move: a torn entry does not name
 * the object. */
static void dg_find_freed(struct dg_error *e, const struct dg_found *f)
{
	uint32_t c = f->span->class_, i;
	uint64_t n;

	if (f->span->kind != DG_SPAN_SMALL) {
		e->free_site = f->span->free_site;
		e->free_thread = f->span->free_thread;
		return;
	}
	for (n = 0; n < dg_root->heaps.used; n++) {
		const struct dg_ring *r = &dg_hot.shared[n].bins[c].ring;
		const struct dg_freed *entries = (const struct dg_freed *)r->entries;

		for (i = r->head; entries && i != r->tail; i++) {
			if (entries[i & r->mask].object != f->object)
				continue;
			e->free_site = entries[i & r->mask].site;
			e->free_thread = entries[i & r->mask].thread;
		}
	}
}

static int dg_in_segments(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t p = *(uint64_t *)data;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && p - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
			return 1;
	}
	return 0;
}

static bool dg_mapped(uint64_t p)
{
	unsigned char resident;

	return dg_sys3(SYS_mincore, p & ~(uint64_t)(DG_PAGE - 1), 1, &resident) == 0;
}

static bool dg_on_a_stack(uint64_t p)
{
	uint64_t i;

	for (i = 1; i < dg_root->threads.used; i++) {
		const struct dg_thread *t = (const struct dg_thread *)dg_root->threads.start + i;

		if (t->state == DG_THREAD_RUNNING && p >= t->stack_low && p < t->stack_high)
			return true;
	}
	return false;
}

/* Of a pointer outside the objects' window. */
static uint32_t dg_classify(uint64_t p)
{
	if (dg_on_a_stack(p))
		return DG_ERROR_FREE_STACK;
	if (p - dg_root->base < DG_OFF_OBJECTS)
		return DG_ERROR_FREE_WILD;
	if (dl_iterate_phdr(dg_in_segments, &p))
		return DG_ERROR_FREE_GLOBAL;
	return dg_mapped(p) ? DG_ERROR_FREE_FOREIGN : DG_ERROR_FREE_WILD;
}

/* A free or realloc of no live object. */
static DG_COLD void dg_bad_pointer(uint64_t p, uint32_t when, const uint64_t *slot)
{
	struct dg_found f = dg_find(p);
	struct dg_error e;

	memset(&e, 0, sizeof(e));
	e.when = when;
	e.pointer = p;
	if (f.word) {
		dg_describe(&e, &f);
		if (p != f.object)
			e.kind = DG_ERROR_FREE_MIDDLE;
		else
			e.kind = DG_ERROR_DOUBLE_FREE;
		if (dg_state(*f.word) != DG_LIVE)
			dg_find_freed(&e, &f);
	} else if (f.span) {
		e.kind = DG_ERROR_FREE_WILD;
	} else {
		/* Not what ld.so's own malloc gave before ours was found: glibc
		 * never frees that through the public symbol. */
		e.kind = dg_classify(p);
	}
	dg_error(&e, slot);
}

/* The canaries of a live object, and the interface that frees it. Damage that
 * was reported is not reported again. */
static DG_COLD void dg_judge_live(const struct dg_found *f, uint32_t when, uint32_t api,
				  const uint64_t *slot)
{
	uint64_t k, before, behind;
	struct dg_error e;

	memset(&e, 0, sizeof(e));
	e.when = when;
	e.pointer = f->object;
	e.api = api;
	dg_describe(&e, f);
	k = dg_canary_of(f->word);
	before = f->object;
	behind = dg_canary_end(f->object, f->size, f->span->slot);
	if (f->span->kind != DG_SPAN_SMALL) {
		k = dg_canary_of_large(f->span);
		before = dg_before(f->span, f->object);
		behind = dg_behind(f->object, f->size, f->span->end);
	} else if (f->object == dg_span_start(f->span) + f->span->first) {
		before = dg_span_start(f->span);
	}
	if (*f->word >> DG_WORD_REPORTED & 1)
		; /* said already */
	else if (dg_damage(f->object + f->size, behind, k, &e.damage, &e.damage_end))
		e.kind = DG_ERROR_OVERFLOW;
	else if (dg_damage(before, f->object, k, &e.damage, &e.damage_end))
		e.kind = DG_ERROR_UNDERFLOW;
	if (e.kind) {
		*f->word |= 1ull << DG_WORD_REPORTED;
		e.word = *f->word;
		e.guard = k;
		dg_error(&e, slot);
	}
	if ((*f->word >> DG_WORD_API & 3) == api)
		return;
	e.kind = DG_ERROR_MISMATCH;
	e.damage = e.damage_end = e.guard = 0;
	dg_error(&e, slot);
}
