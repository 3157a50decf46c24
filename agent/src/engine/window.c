/* Where a replay has its image, a recording has a slot for each thread: one half is for mappings that last as long as a call, the other
 * half for the thread's numbers of arrivals (hunt/site.c). */
#include "engine/engine.h"

#define DG_WINDOW_SLOT (1ull << 20)
#define DG_COPY_WINDOW (DG_WINDOW_SLOT / 2)
#define DG_ARRIVALS_ROOM (DG_WINDOW_SLOT - DG_COPY_WINDOW)
_Static_assert(DG_RTHREADS * DG_WINDOW_SLOT <= DG_ENGINE_STACKS - DG_ENGINE_IMAGE, "windows");

static uint64_t dg_copy_window(const struct dg_rthread *t)
{
	return DG_ENGINE_IMAGE + t->index * DG_WINDOW_SLOT;
}

static uint64_t dg_arrivals_room(uint32_t index)
{
	return DG_ENGINE_IMAGE + index * DG_WINDOW_SLOT + DG_COPY_WINDOW;
}
