/* Call stacks as small numbers. A site is a distinct stack of the first
 * `stacks` return addresses, or of fewer where a call has very many stacks; the
 * depth at which it was met does not matter.
 *
 * The way from a call to its site, on every malloc and free: how far above a
 * return address on the stack the next one stands follows, for nearly all
 * code, from that address alone (a call leaves the frame at one size). So the
 * steps are kept by return address, the stack is walked by them, and the site
 * is found by a digest of the addresses and the distance. A digest is known
 * only where a walk by call frame information (unwind.c) went the same way
 * before; so where frames have fixed sizes a hit is the true stack, and where
 * they have not (alloca) it is one that was true over the same distance.
 *
 * A key of return address and stack depth was tried first: one look-up, but
 * recursion makes one such pair for each depth, and compiling C++ or running
 * git missed at 40 % of the calls, against 4 % now.
 */
#include "agent.h"
#include "syscall.h"

#include <string.h>

#define DG_SITE_BITS 20
_Static_assert(DG_SITE_MASK == (1u << DG_SITE_BITS) - 1, "site number in a slot's word");

/* The last sites are kept for stacks of one frame, so that a program with more
 * stacks than that still shows the caller. */
#define DG_SITES_SHORT (DG_SITE_MASK - (1u << 16))

#define DG_STACK_MIX 0x9e3779b97f4a7c15ull
#define DG_DISTANCE_MIX 0xc2b2ae3d27d4eb4full

static struct {
	uint32_t frames; /* options.stacks */
	/* Not 0 where checks are due at intervals: then no digest of the fast path
	 * is known, and every call passes dg_site_miss, which looks at the clock.
	 * A program in its stride never leaves the fast paths otherwise. */
	uint64_t salt;
} dg_sites;

/* A call's sites get shorter with every DG_SITES_A_LENGTH that it made, and
 * sixteen times sooner where they recur; but never below two frames: all calls
 * of an xmalloc have one return address, and it is their callers that tell
 * something. */
#define DG_SITES_A_LENGTH 2048
#define DG_LEAST_FRAMES 2
/* To see whether a stack recurs takes as long as to walk it again, so one of so
 * many is looked at. */
#define DG_RECURSION_LOOK 16
#define DG_RECURSION_COUNT 256

static DG_COLD uint32_t dg_site_miss(const uint64_t *slot);

static inline uint32_t dg_call_of(uint64_t pc)
{
	return pc >> 2 & ((1u << DG_CALL_BITS) - 1);
}

static inline uint32_t dg_frames_of(uint64_t pc)
{
	return dg_sites.frames - __atomic_load_n(&dg_paths->shorter[dg_call_of(pc)], __ATOMIC_RELAXED);
}

static inline uint64_t dg_mix(uint64_t digest, uint64_t pc)
{
	return (digest ^ pc) * DG_STACK_MIX;
}

/* The sum of the steps tells frames apart that have not one size. */
static inline uint64_t dg_mix_distance(uint64_t words)
{
	return words * DG_DISTANCE_MIX;
}

/* The site of a stack met before; 0: not met, or not to be had. Calls nothing,
 * so that the fast paths save no registers for it. */
static inline uint32_t dg_site_by_steps(const uint64_t *slot, uint64_t salt)
{
	const uint64_t *at = slot, *end = (const uint64_t *)dg_stack.high;
	uint64_t digest = 0, step, found;
	uint32_t left;
	uint16_t low;

	if (DG_UNLIKELY((uint64_t)slot < dg_stack.low || slot >= end))
		return 0;
	for (left = dg_frames_of(*slot);;) {
		digest = dg_mix(digest, *at);
		if (!--left)
			break;
		memcpy(&low, at, sizeof(low));
		step = __atomic_load_n(&dg_paths->steps[low], __ATOMIC_RELAXED);
		if (!step)
			break;
		at += step;
		if (DG_UNLIKELY(at >= end))
			return 0;
	}
	digest ^= dg_mix_distance((uint64_t)(at - slot));
	digest ^= salt;
	found = __atomic_load_n(&dg_paths->recent[digest >> (dg_paths->recent_shift & 63)], __ATOMIC_RELAXED);
	if (DG_UNLIKELY((found ^ digest) >> DG_SITE_BITS))
		return 0;
	return found & DG_SITE_MASK;
}

static inline uint32_t dg_site_met(const uint64_t *slot)
{
	return dg_site_by_steps(slot, 0);
}

static inline uint32_t dg_site_at(struct dg_heap *h, const uint64_t *slot)
{
	uint32_t site = dg_site_met(slot);

	(void)h;
	return DG_LIKELY(site) ? site : dg_site_miss(slot);
}

/* A stack as it was walked. */
struct dg_walk {
	uint32_t frames;
	uint64_t pc[DG_FRAMES];
	uint16_t step[DG_FRAMES]; /* words from the return address before */
};

/* The frame of the program's call at `slot`, its registers as they were then:
 * the agent's own frames are unwound first, because they may have used rbp. */
static __attribute__((noinline)) struct dg_stack_frame dg_frame_at(const uint64_t *slot)
{
	struct dg_stack_frame f = { .exact = true }, own;

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
	f = (struct dg_stack_frame){ .pc = *slot, .sp = (uint64_t)(slot + 1), .slot = (uint64_t)slot };
	return f;
}

static bool dg_slot_on_stack(const uint64_t *slot)
{
	return (uint64_t)slot >= dg_stack.low && (uint64_t)slot < dg_stack.high;
}

static __attribute__((noinline)) void dg_walk_from(struct dg_walk *walk, const uint64_t *slot, uint32_t limit)
{
	struct dg_stack_frame f;

	*walk = (struct dg_walk){ .frames = 1, .pc = { *slot } };
	if (limit == 1 || !dg_slot_on_stack(slot))
		return;
	f = dg_frame_at(slot);
	while (walk->frames < limit) {
		uint64_t below = f.slot;

		if (!dg_step(&f) || (f.slot - below) / 8 > UINT16_MAX || dg_is_start(f))
			return;
		walk->pc[walk->frames] = f.pc;
		walk->step[walk->frames++] = (uint16_t)((f.slot - below) / 8);
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
	uint64_t hash = 0;

	for (uint32_t i = 0; i < frames; i++)
		hash = (hash ^ pc[i]) * DG_STACK_MIX;
	return &dg_buckets[hash >> (64 - dg_bucket_bits)];
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

/* Whether a function is in it twice. */
static bool dg_recurs(const struct dg_walk *walk)
{
	const uint8_t *function[DG_FRAMES];

	for (uint32_t i = 0; i < walk->frames; i++) {
		function[i] = dg_function_at(walk->pc[i] - 1);
		for (uint32_t j = 0; function[i] && j < i; j++)
			if (function[i] == function[j])
				return true;
	}
	return false;
}

/* A new site: of a call with many, the further ones get shorter by a quarter. */
static void dg_count_site(const struct dg_walk *walk)
{
	uint32_t call = dg_call_of(walk->pc[0]), frames = dg_frames_of(walk->pc[0]);
	uint16_t *made = &dg_paths->made[call];

	if (frames <= DG_LEAST_FRAMES)
		return;
	if (++*made % DG_RECURSION_LOOK == 0 && dg_recurs(walk))
		*made += DG_RECURSION_COUNT;
	if (*made < DG_SITES_A_LENGTH)
		return;
	*made = 0;
	frames -= (frames + 3) / 4;
	if (frames < DG_LEAST_FRAMES)
		frames = DG_LEAST_FRAMES;
	__atomic_store_n(&dg_paths->shorter[call], (uint8_t)(dg_sites.frames - frames), __ATOMIC_RELAXED);
}

static uint32_t dg_insert(const struct dg_walk *walk)
{
	uint32_t i = (uint32_t)dg_root->sites.used;
	struct dg_site *s = dg_append(&dg_root->sites, sizeof(*s));

	if (!s)
		return 0;
	s->frames = walk->frames;
	memcpy(s->pc, walk->pc, walk->frames * sizeof(walk->pc[0]));
	dg_link(i);
	DG_ORDER();
	dg_root->sites.used = i + 1;
	dg_count_site(walk);
	return i;
}

static uint32_t dg_intern(struct dg_walk *walk)
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
		return site ? site : dg_insert(walk);
	walk->frames = 1;
	site = dg_look_up(walk);
	return site || used >= DG_SITE_MASK ? site : dg_insert(walk);
}

static void dg_sites_start(void)
{
	dg_paths_start(dg_paths, DG_RECENT_BITS);
	dg_sites.frames = dg_root->options.stacks;
	dg_sites.salt = dg_root->options.check_interval_ms ? DG_STACK_MIX : 0;
}

static void dg_learn_step(uint64_t pc, uint16_t step)
{
	uint16_t *entry = &dg_paths->steps[(uint16_t)pc];

	if (__atomic_load_n(entry, __ATOMIC_RELAXED) != step)
		__atomic_store_n(entry, step, __ATOMIC_RELAXED);
}

/* More room is due when sites that were met before are missed; that new ones
 * push others out may be because these are of no use any more. */
static void dg_learn_site(uint64_t digest, uint32_t site, bool known)
{
	struct dg_path_table *p = dg_paths;
	uint32_t shift = p->recent_shift;
	uint64_t *entry = &p->recent[digest >> shift];
	uint64_t was = __atomic_exchange_n(entry, (digest & ~DG_SITE_MASK) | site, __ATOMIC_RELAXED);

	if (!was || !known || shift <= p->recent_least)
		return;
	if (++p->recent_pushed >> (62 - shift)) {
		p->recent_pushed = 0;
		p->recent_shift = shift - 2 < p->recent_least ? p->recent_least : shift - 2;
	}
}

/* The digest of dg_site_at; leaves the walk's steps for it. */
static uint64_t dg_learn_walk(const struct dg_walk *walk, uint32_t limit)
{
	uint64_t digest = 0, distance = 0;

	for (uint32_t i = 0; i < walk->frames; i++) {
		uint16_t step = i + 1 < walk->frames ? walk->step[i + 1] : 0;

		digest = dg_mix(digest, walk->pc[i]);
		distance += step;
		if (i + 1 < limit)
			dg_learn_step(walk->pc[i], step);
	}
	return digest ^ dg_mix_distance(distance);
}

static DG_COLD uint32_t dg_site_miss(const uint64_t *slot)
{
	struct dg_walk walk;
	uint64_t digest, found;
	uint32_t site, limit, used;

	if (!dg_root)
		return 0;
	if (dg_sites.salt) {
		dg_check_due();
		site = dg_site_by_steps(slot, dg_sites.salt);
		if (site)
			return site;
	}
	limit = dg_frames_of(*slot);
	dg_renew_rules();
	dg_walk_from(&walk, slot, limit);
	/* A call from another stack than the thread's is known by its return
	 * address alone, and its digest is one that dg_site_at does not meet. */
	digest = dg_slot_on_stack(slot) ? dg_learn_walk(&walk, limit) : ~dg_mix(0, *slot);
	digest ^= dg_sites.salt;
	found = __atomic_load_n(&dg_paths->recent[digest >> dg_paths->recent_shift], __ATOMIC_RELAXED);
	if (found && !((found ^ digest) >> DG_SITE_BITS))
		return found & DG_SITE_MASK;
	if (!dg_hold(DG_LEVEL_SITES))
		return 0;
	used = (uint32_t)dg_root->sites.used;
	site = dg_intern(&walk);
	dg_let_go(DG_LEVEL_SITES);
	if (site)
		dg_learn_site(digest, site, site < used);
	return site;
}

static DG_COLD uint32_t dg_stack_at(const uint64_t *slot, uint64_t *pc, uint32_t limit)
{
	struct dg_stack_frame f;
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
