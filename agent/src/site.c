/* Call stacks as small numbers. A site is a distinct stack of the first
 * `stacks` return addresses; the recursion depth at which it was met does not
 * matter, so deep and varied recursion makes no more sites than a person would
 * tell apart.
 *
 * The way from a call to its site, on every malloc and free, is a cache of
 * entries found by (return address, depth in the stack). An entry tells where
 * on the stack the further return addresses stood, and a digest of them all:
 * they are read from the stack again each time, so a hit is the true stack and
 * not merely a likely one. A miss walks the stack (unwind.c) and looks for the
 * same addresses among the sites.
 */
#include "agent.h"
#include "syscall.h"

#include <string.h>

#define DG_SITE_BITS 20
_Static_assert(DG_SITE_MASK == (1u << DG_SITE_BITS) - 1, "site number in a slot's word");

/* The last sites are kept for stacks of one frame, so that a program with more
 * stacks than that still shows who called. */
#define DG_SITES_SHORT (DG_SITE_MASK - (1u << 16))

/* digest and site are one word, written last and read first and last, so that
 * the offsets between belong to it. The digest covers the offsets too. */
struct dg_cached {
	uint64_t digest_site;
	uint16_t offset[DG_FRAMES]; /* in words from the first return address; [0] is the largest */
};
_Static_assert(sizeof(struct dg_cached) == 32, "two entries a cache line");

#define DG_CACHE_BUSY UINT64_MAX /* digest_site while the entry is written */

/* The cache starts small, so that a small program touches little memory, and
 * moves on when entries push each other out. dg_site_cache is the address of the
 * entries, DG_CACHE_DEEP, and in its low six bits 64 - log2 of their number:
 * one word, so that readers see them change together. */
#define DG_CACHE_DEEP 64u /* more than 8 frames are kept */
static struct dg_cached dg_site_cache_small[1 << 9] __attribute__((aligned(128)));
static struct dg_cached dg_site_cache_middle[1 << 12] __attribute__((aligned(128)));
static struct dg_cached dg_site_cache_large[1 << 15] __attribute__((aligned(128)));
static uint64_t dg_site_cache;
static uint32_t dg_site_cache_pushed; /* entries that others took the place of, since it moved */

#define DG_MIX_1 0x9e3779b97f4a7c15ull
#define DG_MIX_2 0xc2b2ae3d27d4eb4full

static inline struct dg_cached *dg_cached_at(uint64_t cache, uint64_t pc, uint64_t depth)
{
	uint64_t hash = (pc ^ depth << 29) * DG_MIX_1;

	return (struct dg_cached *)(cache & ~127ull) + (hash >> (cache & 63));
}

/* Digest of the offsets and of the words they lead to. Two chains, as one
 * would be bound by the latency of the multiplication. */
static inline uint64_t dg_digest(const uint64_t *slot, const uint64_t *w, bool deep)
{
	uint64_t a = slot[0] ^ w[0], b = w[1];

	a = (a ^ slot[w[0] >> 16 & 0xffff]) * DG_MIX_1;
	b = (b ^ slot[w[0] >> 32 & 0xffff]) * DG_MIX_2;
	a = (a ^ slot[w[0] >> 48]) * DG_MIX_1;
	b = (b ^ slot[w[1] & 0xffff]) * DG_MIX_2;
	a = (a ^ slot[w[1] >> 16 & 0xffff]) * DG_MIX_1;
	b = (b ^ slot[w[1] >> 32 & 0xffff]) * DG_MIX_2;
	a = (a ^ slot[w[1] >> 48]) * DG_MIX_1;
	if (deep) {
		b = (b ^ w[2]) * DG_MIX_2;
		a = (a ^ slot[w[2] & 0xffff]) * DG_MIX_1;
		b = (b ^ slot[w[2] >> 16 & 0xffff]) * DG_MIX_2;
		a = (a ^ slot[w[2] >> 32 & 0xffff]) * DG_MIX_1;
		b = (b ^ slot[w[2] >> 48]) * DG_MIX_2;
	}
	/* The high half of a product is the better one. */
	return (a ^ (b >> 32 | b << 32)) & ~DG_SITE_MASK;
}

static inline void dg_read_offsets(struct dg_cached *e, uint64_t *w)
{
	uint64_t *words = (uint64_t *)(void *)e->offset;

	w[0] = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
	w[1] = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
	w[2] = __atomic_load_n(&words[2], __ATOMIC_RELAXED);
}

static DG_COLD uint32_t dg_site_miss(const uint64_t *slot);

static inline uint32_t dg_site_at(struct dg_heap *h, const uint64_t *slot)
{
	uint64_t cache = __atomic_load_n(&dg_site_cache, __ATOMIC_RELAXED);
	uint64_t depth = dg_stack.high - (uint64_t)slot;
	uint64_t word, w[3];
	struct dg_cached *e;

	(void)h;
	if (DG_UNLIKELY(depth > dg_stack.high - dg_stack.low))
		return dg_site_miss(slot);
	e = dg_cached_at(cache, *slot, depth);
	word = __atomic_load_n(&e->digest_site, __ATOMIC_ACQUIRE);
	dg_read_offsets(e, w);
	DG_ORDER();
	if (DG_UNLIKELY(__atomic_load_n(&e->digest_site, __ATOMIC_RELAXED) != word ||
			(w[0] & 0xffff) * 8 >= depth))
		return dg_site_miss(slot);
	if (DG_UNLIKELY((dg_digest(slot, w, cache & DG_CACHE_DEEP) ^ word) >> DG_SITE_BITS))
		return dg_site_miss(slot);
	return word & DG_SITE_MASK;
}

/* Guards the table of sites, not the cache. The holder is known by its thread
 * pointer: a signal handler that interrupts it goes without. */
static uint64_t dg_sites_owner;

static bool dg_sites_lock(void)
{
	uint64_t self = (uint64_t)__builtin_thread_pointer(), free = 0;

	while (!__atomic_compare_exchange_n(&dg_sites_owner, &free, self, false,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (free == self)
			return false;
		free = 0;
		dg_sys0(SYS_sched_yield);
	}
	return true;
}

static void dg_sites_unlock(void)
{
	__atomic_store_n(&dg_sites_owner, 0, __ATOMIC_RELEASE);
}

/* A stack as it was walked. */
struct dg_walk {
	uint32_t frames;
	uint64_t pc[DG_FRAMES];
	uint16_t offset[DG_FRAMES]; /* in words from the first return address */
};

/* The frame of the program's call at `slot`, its registers as they were then:
 * the agent's own frames are unwound first, because they may have used rbp. */
static __attribute__((noinline)) struct dg_frame dg_frame_at(const uint64_t *slot)
{
	struct dg_frame f = { .exact = true }, own;

	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=r"(f.pc), "=r"(f.sp), "=r"(f.bp));
	f.bp_known = true;
	f.slot = f.sp;
	own = f;
	for (unsigned i = 0; i < 16 && own.slot < (uint64_t)slot; i++)
		if (!dg_step(&own))
			break;
	if (own.slot == (uint64_t)slot)
		return own;
	/* Not met: without rbp, as far as that leads. */
	f = (struct dg_frame){ .pc = *slot, .sp = (uint64_t)(slot + 1), .slot = (uint64_t)slot };
	return f;
}

static bool dg_slot_on_stack(const uint64_t *slot)
{
	return (uint64_t)slot >= dg_stack.low && (uint64_t)slot < dg_stack.high;
}

static __attribute__((noinline)) void dg_walk_from(struct dg_walk *walk, const uint64_t *slot, uint32_t limit)
{
	struct dg_frame f;

	*walk = (struct dg_walk){ .frames = 1, .pc = { *slot } };
	if (limit == 1 || !dg_slot_on_stack(slot))
		return;
	f = dg_frame_at(slot);
	while (walk->frames < limit && dg_step(&f)) {
		uint64_t offset = (f.slot - (uint64_t)slot) / 8;

		if (offset > UINT16_MAX)
			break;
		walk->pc[walk->frames] = f.pc;
		walk->offset[walk->frames++] = (uint16_t)offset;
	}
}

/* Sites by their addresses: chains from buckets, the number of which follows
 * that of the sites. Not from dg_meta, which needs the super-heap's lock: that
 * may be held by who asks for a site. Under the sites' own lock. */
static uint32_t dg_buckets_small[1 << 9], dg_buckets_middle[1 << 13], dg_buckets_large[1 << 18];
static uint32_t *dg_buckets = dg_buckets_small;
static uint32_t dg_bucket_bits = 9;

static struct dg_site *dg_site_number(uint32_t i)
{
	return (struct dg_site *)dg_root->sites.start + i;
}

static uint32_t *dg_bucket_of(const uint64_t *pc, uint32_t frames)
{
	uint64_t hash = frames;

	for (uint32_t i = 0; i < frames; i++)
		hash = (hash ^ pc[i]) * DG_MIX_1 ^ hash >> 29;
	return &dg_buckets[(hash * DG_MIX_2) >> (64 - dg_bucket_bits)];
}

static void dg_link(uint32_t i)
{
	struct dg_site *s = dg_site_number(i);
	uint32_t *bucket = dg_bucket_of(s->pc, s->frames);

	s->next = *bucket;
	*bucket = i;
}

static void dg_more_buckets(void)
{
	if (dg_buckets == dg_buckets_small)
		dg_buckets = dg_buckets_middle, dg_bucket_bits = 13;
	else if (dg_buckets == dg_buckets_middle)
		dg_buckets = dg_buckets_large, dg_bucket_bits = 18;
	else
		return;
	for (uint32_t i = 1; i < dg_root->sites.used; i++)
		dg_link(i);
}

static uint32_t dg_look_up(const struct dg_walk *walk)
{
	uint32_t i = *dg_bucket_of(walk->pc, walk->frames);

	for (; i; i = dg_site_number(i)->next) {
		struct dg_site *s = dg_site_number(i);

		if (s->frames == walk->frames &&
		    !memcmp(s->pc, walk->pc, walk->frames * sizeof(walk->pc[0])))
			break;
	}
	return i;
}

static uint32_t dg_insert(const struct dg_walk *walk, const uint64_t *slot)
{
	uint32_t i = (uint32_t)dg_root->sites.used;
	struct dg_site *s = dg_append(&dg_root->sites, sizeof(*s));

	if (!s)
		return 0;
	s->frames = walk->frames;
	s->depth = dg_stack.high - (uint64_t)slot;
	for (uint32_t f = 0; f < walk->frames; f++) {
		s->pc[f] = walk->pc[f];
		s->step[f] = f ? (uint16_t)(walk->offset[f] - walk->offset[f - 1]) : 0;
	}
	dg_link(i);
	DG_ORDER();
	dg_root->sites.used = i + 1;
	return i;
}

static uint32_t dg_intern(struct dg_walk *walk, const uint64_t *slot)
{
	uint64_t used = dg_root->sites.used;
	uint32_t site;

	if (!used && dg_append(&dg_root->sites, sizeof(struct dg_site)))
		used = dg_root->sites.used = 1; /* site 0 is the unknown one */
	if (!used)
		return 0;
	if (used >> dg_bucket_bits)
		dg_more_buckets();
	site = dg_look_up(walk);
	if (site || used < DG_SITES_SHORT)
		return site ? site : dg_insert(walk, slot);
	walk->frames = 1;
	site = dg_look_up(walk);
	return site || used >= DG_SITE_MASK ? site : dg_insert(walk, slot);
}

static void dg_set_cache(struct dg_cached *entries, unsigned bits)
{
	uint64_t deep = dg_root->options.stacks > 8 ? DG_CACHE_DEEP : 0;

	dg_site_cache_pushed = 0;
	__atomic_store_n(&dg_site_cache, (uint64_t)entries | deep | (64 - bits), __ATOMIC_RELEASE);
}

static void dg_sites_start(void)
{
	dg_set_cache(dg_site_cache_small, 9);
}

static void dg_pushed_out(uint64_t cache)
{
	uint64_t entries = cache & ~127ull;

	if (++dg_site_cache_pushed >> (64 - (cache & 63)))
		dg_site_cache_pushed = 0;
	else
		return;
	if (entries == (uint64_t)dg_site_cache_small)
		dg_set_cache(dg_site_cache_middle, 12);
	else if (entries == (uint64_t)dg_site_cache_middle)
		dg_set_cache(dg_site_cache_large, 15);
}

/* Leaves a walk in the cache. The entry is invalid while it is written; who
 * finds it so leaves it alone. */
static void dg_remember(const struct dg_walk *walk, const uint64_t *slot, uint32_t site)
{
	uint64_t depth = dg_stack.high - (uint64_t)slot;
	uint64_t cache = __atomic_load_n(&dg_site_cache, __ATOMIC_RELAXED), was, w[3];
	struct dg_cached *e = dg_cached_at(cache, *slot, depth), fresh = { .digest_site = 0 };

	for (uint32_t i = 1; i < walk->frames; i++)
		fresh.offset[i] = walk->offset[i];
	fresh.offset[0] = walk->offset[walk->frames - 1];
	dg_read_offsets(&fresh, w);
	was = __atomic_load_n(&e->digest_site, __ATOMIC_RELAXED);
	if (was == DG_CACHE_BUSY ||
	    !__atomic_compare_exchange_n(&e->digest_site, &was, DG_CACHE_BUSY, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < 3; i++)
		__atomic_store_n((uint64_t *)(void *)e->offset + i, w[i], __ATOMIC_RELAXED);
	__atomic_store_n(&e->digest_site, dg_digest(slot, w, cache & DG_CACHE_DEEP) | site,
			 __ATOMIC_RELEASE);
	if (was)
		dg_pushed_out(cache);
}

static DG_COLD uint32_t dg_site_miss(const uint64_t *slot)
{
	struct dg_walk walk;
	uint32_t site;

	if (!dg_root)
		return 0;
	dg_walk_from(&walk, slot, dg_root->options.stacks);
	if (!dg_sites_lock())
		return 0;
	site = dg_intern(&walk, slot);
	dg_sites_unlock();
	if (site && dg_slot_on_stack(slot))
		dg_remember(&walk, slot, site);
	return site;
}

static DG_COLD uint32_t dg_stack_at(const uint64_t *slot, uint64_t *pc, uint32_t limit)
{
	struct dg_frame f;
	uint32_t n = 0;

	if (!limit)
		return 0;
	pc[n++] = *slot;
	if (!dg_slot_on_stack(slot))
		return n;
	f = dg_frame_at(slot);
	while (n < limit && dg_step(&f))
		pc[n++] = f.pc;
	return n;
}
