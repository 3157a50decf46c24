/* Size classes: 16..1024 by 16, then eight a doubling up to DG_SMALL_MAX. */
#ifndef DG_CLASSES_H
#define DG_CLASSES_H

#include "agent.h"

/* The class whose slot is the smallest of at least `need` bytes;
 * 0 < need <= DG_SMALL_MAX. */
static inline uint32_t dg_class(uint64_t need)
{
	uint64_t n = need - 1;
	uint32_t log;

	if (DG_LIKELY(n < 1024))
		return (uint32_t)(n >> 4);
	log = 63 - (uint32_t)__builtin_clzll(n);
	return log * 8 + (uint32_t)(n >> (log - 3) & 7) - 16;
}

static inline uint32_t dg_class_slot(uint32_t c)
{
	uint32_t k = c - 64;

	if (c < 64)
		return (c + 1) * 16;
	return (9 + (k & 7)) << (7 + k / 8);
}

/* The alignment that every slot of a span has, and its front guard's size. */
static inline uint32_t dg_class_align(uint32_t slot)
{
	uint32_t low = slot & -slot;

	return low < 4096 ? low : 4096;
}

/* Units of a span: at least seven slots, and little waste at the end. */
static inline uint32_t dg_class_units(uint32_t slot)
{
	uint32_t units = 1;

	while (units < 16 && (uint64_t)slot > units * 4096u)
		units *= 2;
	return units;
}

static inline uint64_t dg_class_magic(uint32_t slot)
{
	return ((1ull << 44) + slot - 1) / slot;
}

#endif
