/* The agent inside the test program itself, with its inner functions made
 * callable. */
#include "agent.c"

#include "support_probe.h"

__attribute__((noinline)) unsigned support_stack(uint64_t *pc, unsigned limit)
{
	if (!dg_self && !dg_attach())
		return 0;
	return dg_stack_at(DG_RETURN_SLOT(), pc, limit);
}

__attribute__((noinline)) unsigned support_site(void)
{
	if (!dg_self && !dg_attach())
		return 0;
	return dg_site_at(dg_self, DG_RETURN_SLOT());
}

unsigned support_site_frames(unsigned site, uint64_t *pc)
{
	const struct dg_site *s = dg_site_number(site);

	memcpy(pc, s->pc, s->frames * sizeof(*pc));
	return s->frames;
}

unsigned support_sites(void)
{
	return (unsigned)dg_root->sites.used;
}
