/* The memory that the agent shares with whoever judges it from outside: a core
 * file, a stopped process, a replay. The agent writes facts here and never
 * formats; agent/layout.go mirrors this file and a test compares both.
 *
 * Everything hangs from struct dg_root, at DG_BASE or where the exported
 * symbol diagnose_agent_root points. Every window has a fixed place relative to
 * the root and is mapped piece by piece as it is needed, never reserved: a
 * reservation would count against RLIMIT_AS and make a core's program headers
 * claim a terabyte.
 *
 * Order of stores, on which the judge of a stopped process and the agent's own
 * checks rely (x86-64 keeps stores in order; the compiler is told to):
 *   - a slot's word says DG_LIVE only while its canary stands;
 *   - an entry is inside [head, tail) of a ring only while the fill stands;
 *   - counters grow after what they count was written.
 * A slot whose word says DG_QUARANTINED but that no ring lists is in the middle
 * of a free or an allocation: nothing is promised of its bytes. One that says
 * DG_REUSABLE is filled until the word says otherwise.
 */
#ifndef DG_LAYOUT_H
#define DG_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define DG_MAGIC 0x65736f6e67616964ull /* "diagnose" in memory order */
#define DG_VERSION 2u

/* Below 0x2aaaaaaab000, from where the kernel maps upwards when the stack is
 * unlimited, and away from what it hands out otherwise (mmap_base is just
 * below the stack). */
#define DG_BASE 0x200000000000ull
/* Where the root goes if DG_BASE is taken: DG_BASE + k * DG_STEP, k < DG_TRIES. */
#define DG_STEP 0x020000000000ull
#define DG_TRIES 4

/* Windows, as offsets from the root. */
#define DG_OFF_ROOT    0x0000000000ull /* root, errors */
#define DG_OFF_HEAPS   0x0040000000ull /* struct dg_heap[] */
#define DG_OFF_THREADS 0x0080000000ull /* struct dg_thread[] */
#define DG_OFF_SITES   0x00c0000000ull /* struct dg_site[] */
#define DG_OFF_SPANS   0x0100000000ull /* struct dg_span[], one a unit of the objects' window */
#define DG_OFF_META    0x1000000000ull /* slot words, bitmaps, rings: handed out by bump */
#define DG_OFF_OBJECTS 0x8000000000ull /* the program's objects */

#define DG_OBJECTS_LIMIT 0x10000000000ull /* 1 TiB: an object's number of 16 bytes takes 36 bits */

#define DG_UNIT_SHIFT 16 /* a unit is 64 KiB */
#define DG_UNIT (1u << DG_UNIT_SHIFT)
#define DG_BLOCK_UNITS 64 /* a block of the super-heap is 4 MiB */

#define DG_CLASSES 120       /* 16..1024 by 16, then eight a doubling up to 128 KiB */
#define DG_SMALL_MAX 131072u /* the largest slot */
#define DG_MIN_CANARY 8u
#define DG_MAX_CANARY 256u   /* of a small object: up to so much after its end rounded up to 8 */
#define DG_LARGE_CANARY 4096u /* of a large object: at most so much on either side is canary */

#define DG_FRAMES 12       /* return addresses kept of an allocation site */
#define DG_ERROR_FRAMES 32 /* and of an error's own stack */
#define DG_BATCH 32        /* objects that move between a heap and the super-heap in one go, at most */
#define DG_ERRORS 64
#define DG_ERROR_BYTES 256

/* A slot's word: what a judge knows of the object in it.
 *   bits 0-17   requested size (small objects; a large one's is in its span)
 *   bits 18-37  site of the allocation (index into sites; 0 is unknown)
 *   bits 38-57  thread of the allocation (index into threads; 0 is unknown)
 *   bits 58-59  state
 *   bits 60-61  interface by which it was allocated
 *   bit  62     its fill was found damaged, or its canary, and that was reported
 * A word of 0 is a slot that was never handed out. */
#define DG_WORD_SITE 18
#define DG_WORD_THREAD 38
#define DG_WORD_STATE 58
#define DG_WORD_API 60
#define DG_WORD_REPORTED 62
#define DG_SIZE_MASK 0x3ffffull
#define DG_SITE_MASK 0xfffffull
#define DG_THREAD_MASK 0xfffffull

enum dg_state {
	DG_FRESH = 0,       /* never handed out */
	DG_LIVE = 1,        /* the program's; canary from its end on (DG_MAX_CANARY), at most to the slot's end */
	DG_QUARANTINED = 2, /* freed; listed in the ring of the heap that freed it, filled */
	DG_REUSABLE = 3,    /* freed; left the ring, waits in the super-heap or in a heap's batch, still filled */
};

enum dg_api {
	DG_API_MALLOC = 0, /* malloc, calloc, realloc, memalign and its kin */
	DG_API_NEW = 1,    /* operator new */
	DG_API_NEW_ARRAY = 2,
};

enum dg_span_kind {
	DG_SPAN_NONE = 0,     /* has no owner, or is a free run of the super-heap */
	DG_SPAN_SMALL = 1,    /* slots of one class */
	DG_SPAN_LARGE = 2,    /* one object */
	DG_SPAN_INTERIOR = 3, /* a further unit of the span `back` units before */
	DG_SPAN_FREED = 4,    /* a large object, freed and still filled: word and object stand */
};

#define DG_SPAN_GUARDED 1u /* flags: an inaccessible page is at `end` */

/* A run of units with objects of one class, or with one large object.
 * Slot i of a small span is at start + first + i * slot, and first, the front
 * guard, is the largest power of two that divides slot (at most 4096), so that
 * every slot has that alignment. Bytes [start, start + first) are canary. */
struct dg_span {
	uint8_t kind;
	uint8_t class_;
	uint16_t flags;
	uint32_t units; /* its length; of an interior unit: the distance back to its head */
	uint32_t slot;  /* bytes a slot */
	uint32_t first; /* bytes before the first slot */
	uint32_t slots;
	uint32_t carved; /* slots [0, carved) may have been handed out; words beyond are 0 */
	uint32_t heap;   /* index of the heap it was carved for */
	uint32_t central; /* slots that wait in the super-heap */
	uint64_t magic;  /* slot index = (offset - first) * magic >> 44 */
	uint64_t words;  /* address of uint64_t[slots] */
	uint64_t bitmap; /* address of uint64_t[(slots + 63) / 64]: which wait in the super-heap */
	uint64_t object; /* large: the object's address, */
	uint64_t size;   /* its requested size, */
	uint64_t end;    /* and the end of its memory, where the guard page is */
	uint64_t next;   /* the super-heap's list: index of the next span plus one */
	uint64_t prev;
	uint32_t free_site, free_thread; /* large: of its last free */
	uint64_t reserved[3]; /* two cache lines in all */
};

/* An object in quarantine, and which thread freed it. */
struct dg_freed {
	uint64_t object; /* the object's address, as the program had it */
	uint32_t site;
	uint32_t thread;
};

/* First in, first out. head and tail run freely; entry i is at
 * entries[i & mask]. The objects are those of one class, oldest at head. */
struct dg_ring {
	uint64_t entries; /* address of struct dg_freed[mask + 1]; 0: never used */
	uint32_t head, tail;
	uint32_t mask;
	uint32_t reserved;
};

/* A heap's objects of one class. */
struct dg_bin {
	struct dg_ring ring;
	uint64_t bump;     /* address of the next fresh slot */
	uint64_t bump_end; /* end of those that may be had before the super-heap is asked */
	uint64_t bump_word; /* address of that slot's word */
	uint32_t span;     /* index of their span plus one; 0: it has no more after bump_end */
	uint32_t keep;     /* objects that stay in the ring at least */
	uint32_t slot;     /* bytes a slot */
	uint32_t waiting;  /* reusable slots in its row of dg_heap.waiting */
};

enum dg_heap_state {
	DG_HEAP_NONE = 0,
	DG_HEAP_OWNED = 1,     /* by a running thread */
	DG_HEAP_IDLE = 2,      /* its thread ended; the next new thread takes the lowest idle one */
	DG_HEAP_ABANDONED = 3, /* its thread vanished in a fork; perhaps in the middle of an operation */
};

/* The heap of one thread. Heap 0 is shared, under a lock, by threads that have
 * none any more, and by calls that interrupt a call of the same thread. */
struct dg_heap {
	uint32_t state;
	uint32_t thread;      /* owner, or last owner: index into threads */
	uint64_t quarantined; /* bytes of slots in its rings */
	uint64_t budget;      /* bytes that they may have; from 7/8 on, the oldest are reused first */
	uint32_t busy;        /* inside the agent: a second call is an interruption */
	uint32_t reserved_;
	uint64_t allocations, frees;
	uint64_t word;    /* bits that the words of its objects share: thread, DG_LIVE */
	uint64_t low;     /* 7/8 of the budget */
	uint64_t waiting; /* address of uint64_t[DG_CLASSES][DG_BATCH]: reusable objects fetched in one go */
	uint64_t reserved[7]; /* bins begin a cache line */
	struct dg_bin bins[DG_CLASSES];
};

enum dg_thread_state {
	DG_THREAD_NONE = 0,
	DG_THREAD_RUNNING = 1,
	DG_THREAD_ENDED = 2,
	DG_THREAD_PARENT = 3, /* of the process that forked this one; it did not come along */
};

/* Threads in the order of their first call into the agent, from 1. */
struct dg_thread {
	uint32_t tid;
	uint32_t state;
	uint32_t heap;
	uint32_t reserved;
	uint64_t stack_low, stack_high; /* bounds of its stack; 0 unknown */
};

/* An allocation or free site: the return addresses above the call into the
 * agent, innermost first. There is one site for each distinct list of them; a
 * list ends where options.stacks says, where the stack does, where it cannot be
 * followed, or earlier if its first address has very many lists. */
struct dg_site {
	uint32_t next;   /* in the chain of its bucket */
	uint32_t frames; /* how many of pc are set */
	uint64_t pc[DG_FRAMES];
};

enum dg_error_kind {
	DG_ERROR_NONE = 0,
	DG_ERROR_OVERFLOW = 1,        /* canary after a live object */
	DG_ERROR_UNDERFLOW = 2,       /* canary before the first object of a span, or before a large one */
	DG_ERROR_USE_AFTER_FREE = 3,  /* fill of a freed object */
	DG_ERROR_DOUBLE_FREE = 4,
	DG_ERROR_FREE_MIDDLE = 5,     /* pointer into an object, not to its start */
	DG_ERROR_FREE_WILD = 6,       /* pointer to no object: never allocated, or not readable */
	DG_ERROR_FREE_STACK = 7,
	DG_ERROR_FREE_GLOBAL = 8,
	DG_ERROR_FREE_FOREIGN = 9,    /* anonymous memory that is not the agent's: another allocator's */
	DG_ERROR_MISMATCH = 10,       /* new[] / delete, new / free and the like */
};

enum dg_error_when {
	DG_AT_FREE = 1,
	DG_AT_REALLOC = 2,
	DG_AT_EVICTION = 3, /* when the object left the quarantine */
	DG_AT_CHECK = 4,    /* a check of everything: interval, epoch boundary */
	DG_AT_EXIT = 5,
	DG_AT_SIZE = 6, /* malloc_usable_size */
};

/* Evidence found while the program ran. */
struct dg_error {
	uint32_t kind;
	uint32_t when;
	uint32_t thread;     /* that found it */
	uint32_t word_valid; /* whether object, size, word are an object's */
	uint64_t pointer;    /* argument of the call; 0 for a check */
	uint64_t object;     /* the object concerned and its requested size */
	uint64_t size;
	uint64_t word; /* its slot's word at that time */
	uint64_t guard; /* its slot's DG_CANARY_WORD, for an overflow or an underflow; 0 otherwise */
	uint64_t slot; /* start and end of its slot */
	uint64_t slot_end;
	uint64_t damage;        /* address of the first damaged byte */
	uint64_t damage_end;    /* after the last one */
	uint32_t free_site, free_thread; /* of the earlier free; 0 unknown */
	uint32_t api;  /* interface of this call (mismatch) */
	uint32_t tid;  /* kernel's id of the thread that found it */
	uint32_t frames;
	uint32_t fatal;         /* the process was ended because of it */
	uint64_t pc[DG_ERROR_FRAMES]; /* this call's stack, innermost first */
	uint32_t bytes_length;
	uint32_t reserved;
	uint8_t bytes[DG_ERROR_BYTES]; /* memory at damage */
};

enum dg_on_error { DG_ABORT = 0, DG_LOG = 1, DG_CONTINUE = 2 };

/* What on_error says of a kind of error: of options.on_kinds the two bits from
 * 2 * kind on, less one; where they are 0, options.on_error. */
#define DG_ON_KIND(options, kind)                                        \
	((options)->on_kinds >> 2 * (kind) & 3 ? ((options)->on_kinds >> 2 * (kind) & 3) - 1 \
					       : (options)->on_error)

struct dg_options {
	uint32_t on_error;
	uint32_t stacks; /* frames kept of a site, 1..DG_FRAMES */
	uint32_t fill_bytes;
	uint32_t exitcode; /* exit status when errors were found and the program would exit with 0; 0: unchanged */
	uint32_t check_interval_ms; /* 0: never */
	uint32_t on_kinds; /* on_error for single kinds: DG_ON_KIND */
	uint64_t quarantine; /* bytes a thread */
	uint64_t canary;     /* the secret of which every guard is made (DG_CANARY_WORD) */
};

/* A window's mapped part is [start, start + mapped); used counts its elements
 * (bytes of META and OBJECTS). */
struct dg_window {
	uint64_t start;
	uint64_t mapped;
	uint64_t used;
};

struct dg_root {
	uint64_t magic;
	uint32_t version;
	uint32_t size;   /* sizeof (struct dg_root) */
	uint64_t base;   /* own address */
	uint32_t ready;  /* 1 once everything below is valid */
	uint32_t pid;    /* the process, renewed after fork */
	struct dg_options options;
	struct dg_window heaps, threads, sites, spans, meta, objects;
	uint64_t boundary; /* objects' window: units are handed out up to this address */
	uint64_t errors;   /* address of struct dg_error[DG_ERRORS] */
	uint32_t error_count; /* found in all but repeated mismatches; the first DG_ERRORS are kept, the last
			       * one of them giving way to one that ends the process */
	uint32_t lock;        /* the super-heap's; 0 free, else the holder's tid, bit 31: others wait */
	uint32_t fallback;    /* 1: DG_BASE was taken */
	uint32_t lost;        /* blocks skipped because another thread held them */
	struct dg_ring large; /* freed large objects, oldest first */
	uint64_t large_quarantined;
	uint64_t large_budget;
	uint64_t failures; /* allocations that failed for lack of memory, of which the last: */
	uint64_t failed_size; /* asked for so many bytes; UINT64_MAX: more than a number holds */
	uint64_t failed_after; /* allocations of its thread's heap before it */
	uint32_t failed_site, failed_thread;
	uint64_t mismatches; /* DG_ERROR_MISMATCH found in all; one of each place and allocation is kept, of the first */
};

/* The fill of a freed object: 8-byte words from its start, all of them
 *   DG_FILL_TAG << 48 | (object - objects.start) / 16 << 12 | DG_FILL_LOW
 * non-canonical, so dereferencing one faults; and the low bits leave room for
 * a member's offset from -1232 to 2863 without losing the object's number. No
 * small number has their low byte, so damage by a stored word shows from that
 * word's first byte on. As an address it is aligned: a debug build of Rust
 * panics over a misaligned pointer before the fault that tells of it.
 * Nothing is promised of what follows the fill in a freed object's slot. */
#define DG_FILL_TAG 0xdf5dull
#define DG_FILL_LOW 0x4d0ull

#define DG_FILL_WORD(objects_start, object) \
	(DG_FILL_TAG << 48 | ((uint64_t)((object) - (objects_start)) >> 4) << 12 | DG_FILL_LOW)

/* How much of a freed object is filled at least: whole 16 bytes, which every
 * slot has room for. options.fill_bytes is a multiple of 16. A small object's
 * whole slot is filled, up to fill_bytes. */
#define DG_FILLED(size, fill_bytes) \
	((size) < (fill_bytes) ? ((size) + 15) & ~(uint64_t)15 : (uint64_t)(fill_bytes))

/* The guard of a slot: the byte at address a is word >> (a % 8 * 8), and word is
 * DG_CANARY_WORD of the process's secret and the slot's number: the address of
 * the slot's word / 8, of a large object's / 128. So a guard that is copied over
 * another one is seen. With this factor, found by search (the test units.c says
 * it again), guards whose numbers differ by less than 109 differ in every byte,
 * and by less than 2^47 in one byte at least; farther apart two bytes are equal
 * by chance, once in 128. All bytes have their high bit set: none ends a string
 * or is ASCII, and as a pointer the word is not canonical. The front guard of a
 * span is that of its first slot. */
#define DG_CANARY_SHIFT 3
#define DG_CANARY_LARGE_SHIFT 7
#define DG_CANARY_HIGH 0x8080808080808080ull
#define DG_CANARY_FACTOR 0x54fa20e28c919e87ull

#define DG_CANARY_WORD(secret, number) (((secret) ^ (number) * DG_CANARY_FACTOR) | DG_CANARY_HIGH)

/* The secret is made of the 16 random bytes that the kernel gives a process
 * (AT_RANDOM), so that a replay has the same one, unless options.canary names
 * it. This is what it is without such bytes. */
#define DG_DEFAULT_CANARY 0xa7d3c1f5e9b38b95ull

_Static_assert(sizeof(struct dg_span) == 128, "span");
_Static_assert(sizeof(struct dg_ring) == 24, "ring");
_Static_assert(sizeof(struct dg_bin) == 64, "bin: one cache line");
_Static_assert(offsetof(struct dg_heap, bins) == 128, "heap: bins on cache lines");
_Static_assert(sizeof(struct dg_freed) == 16, "freed");
_Static_assert(sizeof(struct dg_site) == 104, "site");
_Static_assert(sizeof(struct dg_thread) == 32, "thread");

#endif
