/* What the parts of the agent know of each other. The library is one
 * translation unit (agent.c includes the parts), so that the fast paths are
 * inlined and nothing but the interposed functions is visible. */
#ifndef DG_AGENT_H
#define DG_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#ifdef DG_RECORD
#include "engine/engine.h"
#endif

#define DG_EXPORT __attribute__((visibility("default")))
#define DG_LIKELY(x) __builtin_expect(!!(x), 1)
#define DG_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define DG_COLD __attribute__((noinline, cold))

/* The compiler must not move stores over this; the processor does not. */
#define DG_ORDER() __asm__ volatile("" ::: "memory")

/* region.c: the windows. dg_map_root is called once, by dg_start: it maps the
 * root, sets dg_root, its magic, base and every window. */
static bool dg_map_root(void);
static struct dg_root *dg_root;    /* NULL until dg_start */
static bool dg_grow(struct dg_window *w, uint64_t bytes); /* maps so many more bytes; false: ENOMEM */
static void *dg_meta(size_t bytes, size_t align);         /* zeroed metadata, never given back; NULL: ENOMEM; locks for itself */

/* start.c: everything that must stand before the first allocation. Safe before
 * libc is initialised: raw system calls only. */
static bool dg_start(void);

/* options.c: defaults, then what DIAGNOSE_OPTIONS says; warns on stderr. */
static void dg_options(struct dg_options *o, const char *text);

/* lock.c: the locks, in the order in which one thread takes several. */
enum dg_level {
	DG_LEVEL_CHECK = 0,  /* one check of everything at a time */
	DG_LEVEL_SHARED = 1, /* heap 0; its `busy` */
	DG_LEVEL_SUPER = 2,  /* the super-heap; the root's `lock` */
	DG_LEVEL_SITES = 3,  /* the table of sites, not the cache */
	DG_LEVEL_META = 4,   /* the window of metadata */
	DG_LEVEL_ERROR = 5,  /* records of evidence, and the line */
	DG_LEVELS = 6,
};

/* False instead of a deadlock: where a signal handler interrupted the holder,
 * or one that the holder may wait for. */
static bool dg_hold(enum dg_level level);
static bool dg_try(enum dg_level level); /* does not wait long for anybody */
static void dg_let_go(enum dg_level level);
static bool dg_lock(void); /* the super-heap's */
static void dg_unlock(void);
static uint32_t dg_tid(void);
static uint32_t dg_pid(void);

/* thread.c: the calling thread's heap, NULL before dg_attach and after the
 * thread's end. A call that finds it NULL, or busy because it interrupts a call
 * of the same thread, is served by heap 0, whose `busy` is its lock. */
static __thread struct dg_heap *dg_self __attribute__((tls_model("initial-exec")));

/* The first call of a thread, dg_self being NULL: gives it a number and the
 * lowest idle heap or a new one. NULL if that is not possible: heap 0 serves. */
static DG_COLD struct dg_heap *dg_attach(void);

/* heap.c: heap 0, and copies of the options where the fast paths read them.
 * Called once by dg_start, after dg_map_root and the options, before ready. */
static bool dg_heaps_start(void);

/* heap.c: called by dg_attach under the lock for a heap that never existed;
 * its memory is mapped and zero. */
static bool dg_heap_init(struct dg_heap *h);

/* site.c: the site of the call whose return address is stored at `slot`
 * (DG_RETURN_SLOT in the exported function itself). 0 when the table is full. */
#define DG_RETURN_SLOT() ((const uint64_t *)__builtin_dwarf_cfa() - 1)
static inline uint32_t dg_site_at(struct dg_heap *h, const uint64_t *slot);
static inline uint32_t dg_site_met(const uint64_t *slot); /* without the walk of a stack not met before: 0 then */
static void dg_sites_start(void);
static void dg_unwind_start(void);
static DG_COLD uint32_t dg_stack_at(const uint64_t *slot, uint64_t *pc, uint32_t limit); /* frames written */

/* spare.c: slots for calls that find everything in the hands of the code that
 * they interrupted. Set when they run low; then they are provided where the
 * super-heap's lock is given back. */
static bool dg_spare_lacks;
static DG_COLD void dg_spare_provide(void);

/* error.c: records evidence and does what on_error says; returns if the
 * program may continue. The caller fills what it knows; pointer, object and
 * damage decide which bytes are copied. */
static DG_COLD void dg_error(struct dg_error *e, const uint64_t *slot);
static bool dg_ended; /* an error has ended the process, or is about to */

/* error.c: notes an allocation that fails for lack of memory. */
static DG_COLD void dg_failed(const struct dg_heap *h, uint64_t size, const uint64_t *slot);

/* check.c: every canary and every fill, from any thread, at any time. Damage
 * is reported once (DG_WORD_REPORTED). */
static DG_COLD void dg_check_all(uint32_t when);

/* For slow paths that hold no lock: checks everything if check_interval_ms has
 * passed since the last time. */
static inline void dg_check_due(void);

#endif
