/* Where a turn may end, as far as the recorder's own library and libc are concerned. */
#include "agent.h"
#include "engine/engine.h"

/* The thread is in code of libc's that a replay does not execute, or not in the same way. */
static __thread uint32_t dg_within_real __attribute__((tls_model("initial-exec")));

/* The result of a call in whose code no turn ends. */
#define DG_WITHIN_REAL(call)                                                                                           \
	({                                                                                                             \
		__typeof__(call) dg_returned;                                                                          \
		dg_within_real = 1;                                                                                    \
		dg_returned = (call);                                                                                  \
		dg_within_real = 0;                                                                                    \
		dg_returned;                                                                                           \
	})

/* libc's code is the recorder's own then: the heap's, or what a replay has not. */
bool dg_turn_may_end(void)
{
	return !dg_held && !dg_within_real;
}
