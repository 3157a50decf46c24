/* Canaries and fills: written and compared in whole words. */
#include "agent.h"
#include "heap/hot.h"

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

/* The guard word k of the slot with this word. */
static DG_HOT uint64_t dg_canary_of(const uint64_t *word)
{
	return DG_CANARY_WORD(dg_hot.canary, (uint64_t)word >> DG_CANARY_SHIFT);
}

/* The same for a span's large object. */
static inline uint64_t dg_canary_of_large(const struct dg_span *s)
{
	return DG_CANARY_WORD(dg_hot.canary, (uint64_t)&s->reserved[0] >> DG_CANARY_LARGE_SHIFT);
}

/* The guard k as a word at an address that need not be aligned. */
static inline uint64_t dg_canary_word(uint64_t k, uint64_t at)
{
	uint32_t bits = (uint32_t)at * 8;

	return k >> (bits & 63) | k << (-bits & 63);
}

static inline uint64_t dg_up8(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

/* [start, end) of at least 8 bytes, end a multiple of 8. */
static void dg_canary_run(uint64_t start, uint64_t end, uint64_t k)
{
	__m128i pair = _mm_set1_epi64x((long long)k);
	uint64_t at = dg_up8(start);

	dg_put8(start, dg_canary_word(k, start));
	for (; at + 16 <= end; at += 16)
		_mm_storeu_si128((__m128i *)at, pair);
	if (at < end)
		dg_put8(at, k);
}

static bool dg_canary_run_stands(uint64_t start, uint64_t end, uint64_t k)
{
	__m128i pair = _mm_set1_epi64x((long long)k), d = _mm_setzero_si128();
	uint64_t differ = dg_get8(start) ^ dg_canary_word(k, start);
	uint64_t at = dg_up8(start);

	for (; at + 16 <= end; at += 16)
		d = _mm_or_si128(d, _mm_xor_si128(_mm_loadu_si128((const __m128i *)at), pair));
	if (at < end)
		differ |= dg_get8(at) ^ k;
	return !differ && _mm_movemask_epi8(_mm_cmpeq_epi8(d, _mm_setzero_si128())) == 0xffff;
}

static inline uint64_t dg_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Where the canary of a small object ends. */
static DG_HOT uint64_t dg_canary_end(uint64_t object, uint64_t size, uint64_t slot)
{
	uint64_t longest = dg_up8(size) + DG_MAX_CANARY;

	return object + (longest < slot ? longest : slot);
}

/* Slots of up to 1 KiB nearly always have 8 to 23 bytes of canary: three words
 * that may overlap cover them without a branch on the length, which would be
 * mispredicted. */
#define DG_CANARY_WORDS 24

static DG_HOT void dg_canary_put(uint64_t object, uint64_t size, uint64_t slot, uint64_t k)
{
	uint64_t middle = dg_most(dg_up8(size), slot - 16);

	if (DG_UNLIKELY(slot - size > DG_CANARY_WORDS)) {
		dg_canary_run(object + size, dg_canary_end(object, size, slot), k);
		return;
	}
	dg_put8(object + size, dg_canary_word(k, size));
	dg_put8(object + middle, k);
	dg_put8(object + slot - 8, k);
}

static DG_HOT bool dg_canary_stands(uint64_t object, uint64_t size, uint64_t slot, uint64_t k)
{
	uint64_t middle = dg_most(dg_up8(size), slot - 16);

	if (DG_UNLIKELY(slot - size > DG_CANARY_WORDS))
		return dg_canary_run_stands(object + size, dg_canary_end(object, size, slot), k);
	return !((dg_get8(object + size) ^ dg_canary_word(k, size)) |
		 (dg_get8(object + middle) ^ k) | (dg_get8(object + slot - 8) ^ k));
}

static inline __m128i dg_fill_pair(uint64_t object)
{
	return _mm_set1_epi64x((long long)DG_FILL_WORD(dg_hot.objects, object));
}

static inline uint64_t dg_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline void dg_put16(uint64_t at, __m128i w)
{
	*(__m128i *)at = w;
}

/* The places of eight vectors that cover a fill of up to 128 bytes: four from
 * the start and four up to the end, none outside. They overlap in a smaller
 * one, which costs less than a mispredicted branch on its size. */
struct dg_places {
	uint64_t first, last; /* addresses of the outermost vectors */
	uint64_t a, b, c;     /* distances of the others from them */
};

static DG_HOT struct dg_places dg_places(uint64_t object, uint64_t n)
{
	uint64_t span = n - 16;

	return (struct dg_places){
		object, object + span, dg_least(16, span), dg_least(32, span), dg_least(48, span)
	};
}

/* How much of a slot is filled, whatever its object's size: a freed object's
 * surroundings have no owner either, and the size need not be looked up. */
static DG_HOT uint64_t dg_filled(uint64_t slot)
{
	return dg_least(slot, dg_hot.fill);
}

/* n is a multiple of 16. */
static DG_HOT void dg_fill(uint64_t object, uint64_t n)
{
	uint64_t at;
	__m128i w = dg_fill_pair(object);
	struct dg_places p;

	if (DG_UNLIKELY(!n))
		return;
	p = dg_places(object, n);
	dg_put16(p.first, w);
	dg_put16(p.first + p.a, w);
	dg_put16(p.first + p.b, w);
	dg_put16(p.first + p.c, w);
	dg_put16(p.last - p.c, w);
	dg_put16(p.last - p.b, w);
	dg_put16(p.last - p.a, w);
	dg_put16(p.last, w);
	for (at = object + 64; DG_UNLIKELY(n > 128) && at < p.last - 48; at += 16)
		dg_put16(at, w);
}

static DG_HOT __m128i dg_differ(uint64_t at, __m128i w)
{
	return _mm_xor_si128(*(const __m128i *)at, w);
}

static DG_HOT bool dg_fill_stands(uint64_t object, uint64_t n)
{
	uint64_t at;
	__m128i w = dg_fill_pair(object), d, e;
	struct dg_places p;

	if (DG_UNLIKELY(!n))
		return true;
	p = dg_places(object, n);
	d = _mm_or_si128(dg_differ(p.first, w), dg_differ(p.first + p.a, w));
	e = _mm_or_si128(dg_differ(p.first + p.b, w), dg_differ(p.first + p.c, w));
	d = _mm_or_si128(d, _mm_or_si128(dg_differ(p.last - p.c, w), dg_differ(p.last - p.b, w)));
	e = _mm_or_si128(e, _mm_or_si128(dg_differ(p.last - p.a, w), dg_differ(p.last, w)));
	d = _mm_or_si128(d, e);
	for (at = object + 64; DG_UNLIKELY(n > 128) && at < p.last - 48; at += 16)
		d = _mm_or_si128(d, dg_differ(at, w));
	return _mm_movemask_epi8(_mm_cmpeq_epi8(d, _mm_setzero_si128())) == 0xffff;
}

/* The damaged bytes of [start, end): false if there are none. A fill is
 * compared with the object's fill word, a canary with the slot's guard word. */
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
