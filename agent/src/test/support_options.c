/* Prints the options that the agent runs with. */
#define _GNU_SOURCE
#include "support_agent.h"

int main(void)
{
	const struct dg_options *o = &agent_root()->options;

	printf("on_error=%u on_kinds=%x stacks=%u fill_bytes=%u exitcode=%u check_interval_ms=%u quarantine=%lu canary=%lx\n",
	       o->on_error, o->on_kinds, o->stacks, o->fill_bytes, o->exitcode, o->check_interval_ms,
	       (unsigned long)o->quarantine, (unsigned long)o->canary);
	return 0;
}
