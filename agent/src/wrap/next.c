/* Finds what wrap/next.h declares. */
#include "agent.h"
#include "wrap/next.h"

/* The linker's: bounds of the section. */
extern const struct dg_next __start_dg_nexts[] DG_HIDDEN, __stop_dg_nexts[] DG_HIDDEN;

/* After the engine's, before all others. Some are not in every libc. */
__attribute__((constructor(102))) static void dg_next_find(void)
{
	for (const struct dg_next *n = __start_dg_nexts; n < __stop_dg_nexts; n++)
		*n->to = dlsym(RTLD_NEXT, n->name);
}
