/* Size classes: 16..256 by 16, then eight a doubling up to DG_SMALL_MAX. */
#ifndef DG_CLASSES_H
#define DG_CLASSES_H

#include "agent.h"

/* Classes by sixteenths, up to 1 KiB: sizes around 256 bytes are frequent and
 * mixed, and a branch between the two rules would be mispredicted. */
static const uint8_t dg_small_classes[64] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
	16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23,
	24, 24, 24, 24, 25, 25, 25, 25, 26, 26, 26, 26, 27, 27, 27, 27,
	28, 28, 28, 28, 29, 29, 29, 29, 30, 30, 30, 30, 31, 31, 31, 31,
};

/* The class whose slot is the smallest of at least `need` bytes;
 * 0 < need <= DG_SMALL_MAX. */
static inline uint32_t dg_class(uint64_t need)
{
	uint64_t n = need - 1;
	uint32_t log;

	if (DG_LIKELY(n < 1024))
		return dg_small_classes[n >> 4];
	log = 63 - (uint32_t)__builtin_clzll(n);
	return log * 8 + (uint32_t)(n >> (log - 3) & 7) - 48;
}

static inline uint32_t dg_class_slot(uint32_t c)
{
	uint32_t k = c - 16;

	if (c < 16)
		return (c + 1) * 16;
	return (9 + (k & 7)) << (5 + k / 8);
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
