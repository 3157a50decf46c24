/* A last resort for calls that find both the thread's heap and heap 0 in the
 * hands of code that they interrupted: a span set aside, handed out by an
 * atomic counter. Its objects are freed like all others. */
#include "agent.h"
#include "classes.h"
#include "hot.h"

#define DG_SPARE_CLASS 31u /* slots of 1 KiB */

static uint64_t dg_spare_span; /* index plus one */
static uint32_t dg_spare_next;

/* Needs the lock; called where spans are made. */
static void dg_spare_provide(void)
{
	struct dg_span *s;

	if (dg_spare_span && dg_spare_next < dg_span(dg_spare_span - 1)->slots / 2)
		return;
	s = dg_span_new(0, DG_SPARE_CLASS);
	if (!s)
		return;
	dg_spare_next = s->slots;
	DG_ORDER();
	dg_spare_span = dg_span_index(s) + 1;
	DG_ORDER();
	dg_spare_next = 0;
}

static DG_COLD void *dg_spare(uint64_t size, uint64_t align, uint32_t api)
{
	struct dg_span *s;
	uint64_t object;
	uint32_t i;

	if (!dg_spare_span)
		return NULL;
	s = dg_span(dg_spare_span - 1);
	if (size > s->slot - DG_MIN_CANARY || align > s->first)
		return NULL;
	i = __atomic_fetch_add(&dg_spare_next, 1, __ATOMIC_RELAXED);
	if (i >= s->slots) {
		__atomic_fetch_sub(&dg_spare_next, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	object = dg_span_start(s) + s->first + (uint64_t)i * s->slot;
	dg_canary_put(object, size, s->slot);
	DG_ORDER();
	((uint64_t *)s->words)[i] = size | (uint64_t)DG_LIVE << DG_WORD_STATE |
				    (uint64_t)api << DG_WORD_API;
	return (void *)object;
}
