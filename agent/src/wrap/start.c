/* What the heap noted of the process before the engine started: ld.so allocates
 * earlier than any constructor runs. A replay has the recorded numbers. */
#include "agent.h"

void dg_identify(void)
{
	if (!dg_root)
		return;
	dg_own_tid = 0;
	dg_root->pid = dg_pid();
	if (dg_number)
		dg_thread_number(dg_number)->tid = dg_tid();
}
