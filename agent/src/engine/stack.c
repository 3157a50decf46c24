/* Stacks of the program's threads, in slots of a window of the engine's: which
 * one a thread gets follows from the order of creations and joins alone. */
#include "engine/engine.h"
#include "syscall.h"
#include "engine/thread.h"

#include <sys/mman.h>

#define DG_STACK_SLOTS ((DG_ENGINE_END - DG_ENGINE_STACKS) / DG_STACK_SLOT)
#define DG_PAGE_MASK (DG_PAGE_BYTES - 1)
#define DG_RED_ZONE_BYTES 128u

/* Of one thread. */
struct dg_stack_slots {
	uint32_t first, count;
};

/* Which are taken, and the mappings in them. */
static bool dg_slots[DG_STACK_SLOTS];
static struct dg_slot_map {
	uint64_t base, low; /* the guard is between them; 0: nothing is mapped */
} dg_slot_maps[DG_STACK_SLOTS];
static uint32_t dg_slot_hint; /* none below it is free */

/* The lowest run of free slots; DG_STACK_SLOTS: there is none. */
static uint32_t dg_slots_find(uint32_t slots)
{
	uint32_t run = 0;

	while (dg_slot_hint < DG_STACK_SLOTS && dg_slots[dg_slot_hint])
		dg_slot_hint++;
	for (uint32_t i = dg_slot_hint; i < DG_STACK_SLOTS; i++) {
		run = dg_slots[i] ? 0 : run + 1;
		if (run == slots)
			return i + 1 - slots;
	}
	return DG_STACK_SLOTS;
}

static void dg_slots_free(struct dg_stack_slots *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		dg_slots[s->first + i] = false;
	if (s->count && s->first < dg_slot_hint)
		dg_slot_hint = s->first;
	s->count = 0;
}

/* Zeroed, in both modes: what the last thread left there is not the same. */
static bool dg_stack_map(uint32_t slot, uint32_t slots, uint64_t base, uint64_t low, uint64_t high)
{
	struct dg_slot_map *map = &dg_slot_maps[slot + slots - 1];

	if (map->base == base && map->low == low)
		return !dg_sys3(SYS_madvise, low, high - low, MADV_DONTNEED);
	for (uint32_t i = 0; i < slots; i++) {
		if (dg_slot_maps[slot + i].base)
			dg_sys2(SYS_munmap, DG_ENGINE_STACKS + (slot + i) * DG_STACK_SLOT, DG_STACK_SLOT);
		dg_slot_maps[slot + i] = (struct dg_slot_map){ 0 };
	}
	if (dg_sys(SYS_mmap, (long)base, (long)(high - base), PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE | MAP_FIXED, -1, 0) != (long)base)
		return false;
	if (dg_sys3(SYS_mprotect, low, high - low, PROT_READ | PROT_WRITE))
		return false;
	for (uint32_t i = 0; i < slots; i++)
		dg_slot_maps[slot + i] = (struct dg_slot_map){ base, low };
	return true;
}

/* At the upper end of its slots. */
static bool dg_stack_take(struct dg_stack_slots *s, struct dg_creation *c)
{
	uint64_t guard = c->guard < DG_PAGE_BYTES ? DG_PAGE_BYTES : (c->guard + DG_PAGE_MASK) & ~DG_PAGE_MASK;
	uint64_t slots, high, low;
	uint32_t slot;

	if (c->size > DG_STACK_SLOTS * DG_STACK_SLOT / 2 || guard > DG_STACK_SLOTS * DG_STACK_SLOT / 2)
		return false;
	slots = (((c->size + DG_PAGE_MASK) & ~DG_PAGE_MASK) + guard + DG_STACK_SLOT - 1) / DG_STACK_SLOT;
	slot = dg_slots_find((uint32_t)slots);
	if (slot == DG_STACK_SLOTS)
		return false;
	high = DG_ENGINE_STACKS + (slot + slots) * DG_STACK_SLOT;
	low = (high - c->size) & ~DG_PAGE_MASK;
	if (!dg_stack_map(slot, (uint32_t)slots, low - guard, low, high))
		return false;
	for (uint32_t i = 0; i < slots; i++)
		dg_slots[slot + i] = true;
	s->first = slot;
	s->count = (uint32_t)slots;
	c->stack_low = high - c->size;
	return true;
}

/* glibc gives back a thread's stack at its end except the part in use, unless it
 * is the program's own, as ours is for it. Bytes below the stack pointer may
 * differ in a replay, and nothing of this thread is live there, so it goes. */
static void dg_stack_strip(const struct dg_rthread *me, uint64_t sp)
{
	uint64_t low = (me->stack_low + DG_PAGE_MASK) & ~DG_PAGE_MASK, end = sp - DG_RED_ZONE_BYTES, high = end & ~DG_PAGE_MASK;

	if (end < low || sp > me->stack_high)
		return;
	memset((void *)high, 0, end - high);
	if (low < high)
		dg_sys3(SYS_madvise, low, high - low, MADV_DONTNEED);
}

#define DG_MAIN_PAGES 2048u

/* The main thread's, whose mapping ends where the kernel let it grow to. It may
 * stand on a coroutine's, below which other memory lies. */
static void dg_stack_strip_main(const struct dg_rthread *me, uint64_t sp)
{
	uint64_t end = sp - DG_RED_ZONE_BYTES, at = end & ~DG_PAGE_MASK;

	if (me->stack_high - sp > DG_MAIN_PAGES * DG_PAGE_BYTES)
		return;
	memset((void *)at, 0, end - at);
	for (uint32_t i = 0; i < DG_MAIN_PAGES; i++) {
		at -= DG_PAGE_BYTES;
		if (dg_sys3(SYS_madvise, at, DG_PAGE_BYTES, MADV_DONTNEED))
			return;
	}
}
