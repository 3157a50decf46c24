/* Where a turn may end, as far as the recorder's own library and libc are concerned. */
#include "agent.h"
#include "engine/engine.h"

/* The thread is in code of libc's that a replay does not execute, or not in the same way. */
static __thread uint32_t dg_within_real __attribute__((tls_model("initial-exec")));

/* libc's code is the recorder's own then: the heap's, or what a replay has not. */
bool dg_turn_may_end(void)
{
	return !dg_held && !dg_within_real;
}
