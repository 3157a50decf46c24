/* The windows at their fixed distances from the root, mapped piece by piece.
 * Raw system calls only: the first allocation may come before libc's start. */
#include "agent.h"
#include "heap/hot.h"
#include "syscall.h"

#include <errno.h>
#include <sys/mman.h>

/* The address of the root, for readers outside of the process. */
DG_EXPORT uint64_t diagnose_agent_root;

#define DG_PAGE 4096u
#define DG_META_PIECE (1u << 20)

/* Maps exactly there or not at all: 0, or a negative errno, -EEXIST if
 * something else is there. A kernel before 4.17 takes the address as a hint. */
static long dg_map_at(uint64_t addr, uint64_t bytes)
{
	long got = dg_sys(SYS_mmap, (long)addr, (long)bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == (long)addr)
		return 0;
	if (got < 0)
		return got;
	dg_sys2(SYS_munmap, got, bytes);
	return -EEXIST;
}

/* Memory that is touched sparsely would become large of huge pages. A kernel without
 * them refuses this. */
static void dg_small_pages(uint64_t addr, uint64_t bytes)
{
	dg_sys3(SYS_madvise, addr, bytes, MADV_NOHUGEPAGE);
}

static bool dg_map_metadata(uint64_t addr, uint64_t bytes)
{
	if (dg_map_at(addr, bytes))
		return false;
	dg_small_pages(addr, bytes);
	return true;
}

/* The linker's: where the library's own tables lie, which are metadata, too. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

static void dg_tables_in_small_pages(void)
{
	uint64_t start = ((uint64_t)__bss_start + DG_PAGE - 1) & ~(uint64_t)(DG_PAGE - 1);

	if (start < (uint64_t)_end)
		dg_small_pages(start, (uint64_t)_end - start);
}

static bool dg_grow(struct dg_window *w, uint64_t bytes)
{
	bytes = (bytes + DG_PAGE - 1) & ~(uint64_t)(DG_PAGE - 1);
	if (!dg_map_metadata(w->start + w->mapped, bytes))
		return false;
	w->mapped += bytes;
	return true;
}

/* Maps up to `end` bytes of the window; tries a large piece, then, under
 * RLIMIT_AS, only as much as is needed. */
static bool dg_reserve(struct dg_window *w, uint64_t end, uint64_t piece)
{
	uint64_t lack;

	if (end <= w->mapped)
		return true;
	lack = end - w->mapped;
	return dg_grow(w, lack > piece ? lack : piece) || dg_grow(w, lack);
}

static void *dg_meta(size_t bytes, size_t align)
{
	struct dg_window *w = &dg_root->meta;
	void *memory = NULL;
	uint64_t at;

	if (!dg_hold(DG_LEVEL_META))
		return NULL;
	at = (w->used + align - 1) & ~(uint64_t)(align - 1);
	if (dg_reserve(w, at + bytes, DG_META_PIECE)) {
		w->used = at + bytes;
		memory = (void *)(w->start + at);
	}
	dg_let_go(DG_LEVEL_META);
	return memory;
}

static void dg_windows(struct dg_root *r)
{
	uint64_t base = r->base;

	r->heaps.start = base + DG_OFF_HEAPS;
	r->threads.start = base + DG_OFF_THREADS;
	r->sites.start = base + DG_OFF_SITES;
	r->spans.start = base + DG_OFF_SPANS;
	r->meta.start = base + DG_OFF_META;
	r->objects.start = base + DG_OFF_OBJECTS;
	r->boundary = r->objects.start;
	r->errors = base + ((sizeof(*r) + 63) & ~(uint64_t)63);
	dg_hot.objects = r->objects.start;
	dg_hot.spans = (struct dg_span *)r->spans.start;
}

static bool dg_map_root(void)
{
	uint64_t bytes = sizeof(struct dg_root) + 64 + DG_ERRORS * sizeof(struct dg_error);
	uint64_t k, base = 0;

	bytes = (bytes + DG_PAGE - 1) & ~(uint64_t)(DG_PAGE - 1);
	for (k = 0; k < DG_TRIES; k++) {
		base = DG_BASE + k * DG_STEP;
		if (dg_map_metadata(base, bytes))
			break;
	}
	if (k == DG_TRIES)
		return false;
	dg_tables_in_small_pages();
	dg_root = (struct dg_root *)base;
	dg_root->base = base;
	dg_root->fallback = k != 0;
	dg_root->version = DG_VERSION;
	dg_root->size = sizeof(*dg_root);
	dg_windows(dg_root);
	DG_ORDER();
	dg_root->magic = DG_MAGIC;
	diagnose_agent_root = base;
	return true;
}
