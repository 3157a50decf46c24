/* Canaries and fills: written and compared in whole words. */
#include "agent.h"
#include "hot.h"

#include <emmintrin.h>
#include <string.h>

static inline void dg_put8(uint64_t at, uint64_t value)
{
	memcpy((void *)at, &value, 8);
}

static inline uint64_t dg_get8(uint64_t at)
{
	uint64_t value;

	memcpy(&value, (const void *)at, 8);
	return value;
}

/* The canary as a word at an address that need not be aligned. */
static inline uint64_t dg_canary_word(uint64_t at)
{
	uint32_t bits = (uint32_t)(at & 7) * 8;
	uint64_t k = dg_hot.canary;

	return k >> bits | k << (-bits & 63);
}

static inline uint64_t dg_up8(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

/* [start, end) of at least 8 bytes, end a multiple of 8. */
static inline void dg_canary_run(uint64_t start, uint64_t end)
{
	uint64_t at = dg_up8(start);

	dg_put8(start, dg_canary_word(start));
	for (; at < end; at += 8)
		dg_put8(at, dg_hot.canary);
}

static inline bool dg_canary_run_stands(uint64_t start, uint64_t end)
{
	uint64_t differ = dg_get8(start) ^ dg_canary_word(start);
	uint64_t at = dg_up8(start);

	for (; at < end; at += 8)
		differ |= dg_get8(at) ^ dg_hot.canary;
	return !differ;
}

/* Slots of up to 256 bytes nearly always have 8 to 23 bytes of canary: three
 * words that may overlap do without a branch. */
static inline void dg_canary_put(uint64_t object, uint64_t size, uint64_t slot)
{
	uint64_t middle;

	if (DG_UNLIKELY(slot - size > 24)) {
		dg_canary_run(object + size, object + slot);
		return;
	}
	middle = dg_up8(size) > slot - 16 ? dg_up8(size) : slot - 16;
	dg_put8(object + size, dg_canary_word(size));
	dg_put8(object + middle, dg_hot.canary);
	dg_put8(object + slot - 8, dg_hot.canary);
}

static inline bool dg_canary_stands(uint64_t object, uint64_t size, uint64_t slot)
{
	uint64_t middle;

	if (DG_UNLIKELY(slot - size > 24))
		return dg_canary_run_stands(object + size, object + slot);
	middle = dg_up8(size) > slot - 16 ? dg_up8(size) : slot - 16;
	return !((dg_get8(object + size) ^ dg_canary_word(size)) |
		 (dg_get8(object + middle) ^ dg_hot.canary) |
		 (dg_get8(object + slot - 8) ^ dg_hot.canary));
}

static inline __m128i dg_fill_pair(uint64_t object)
{
	return _mm_set1_epi64x((long long)DG_FILL_WORD(dg_hot.objects, object));
}

/* Overlapping stores as memset does it: two branches for what fill_bytes
 * usually asks for. */
static inline void dg_fill(uint64_t object, uint64_t size)
{
	uint64_t n = DG_FILLED(size, dg_hot.fill), at;
	__m128i w = dg_fill_pair(object);
	__m128i *first = (__m128i *)object, *last = (__m128i *)(object + n);

	if (DG_UNLIKELY(!n))
		return;
	if (n <= 32) {
		first[0] = w;
		last[-1] = w;
	} else if (n <= 64) {
		first[0] = w;
		first[1] = w;
		last[-2] = w;
		last[-1] = w;
	} else if (n <= 128) {
		first[0] = w;
		first[1] = w;
		first[2] = w;
		first[3] = w;
		last[-4] = w;
		last[-3] = w;
		last[-2] = w;
		last[-1] = w;
	} else {
		for (at = object; at < object + n; at += 16)
			*(__m128i *)at = w;
	}
}

static inline __m128i dg_differ(__m128i d, uint64_t at, __m128i w)
{
	return _mm_or_si128(d, _mm_xor_si128(*(const __m128i *)at, w));
}

static inline bool dg_fill_stands(uint64_t object, uint64_t size)
{
	uint64_t n = DG_FILLED(size, dg_hot.fill), end = object + n, at;
	__m128i w = dg_fill_pair(object), d = _mm_setzero_si128();

	if (DG_UNLIKELY(!n))
		return true;
	if (n <= 32) {
		d = dg_differ(dg_differ(d, object, w), end - 16, w);
	} else if (n <= 64) {
		d = dg_differ(dg_differ(d, object, w), object + 16, w);
		d = dg_differ(dg_differ(d, end - 32, w), end - 16, w);
	} else {
		for (at = object; at < end; at += 16)
			d = dg_differ(d, at, w);
	}
	return _mm_movemask_epi8(_mm_cmpeq_epi8(d, _mm_setzero_si128())) == 0xffff;
}

/* The damaged bytes of [start, end): false if there are none. A fill is
 * compared with the object's word, a canary with dg_hot.canary. */
static DG_COLD bool dg_damage(uint64_t start, uint64_t end, uint64_t word, uint64_t *first,
			      uint64_t *last)
{
	bool found = false;
	uint64_t at;

	for (at = start; at < end; at++) {
		if (*(const uint8_t *)at == (uint8_t)(word >> (at % 8 * 8)))
			continue;
		if (!found)
			*first = at;
		*last = at + 1;
		found = true;
	}
	return found;
}
