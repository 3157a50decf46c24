/* Calls whose results nothing else can bring in again, without asking the kernel. */
#include "agent.h"
#include "engine/thread.h"
#include "wrap/next.h"

/* std::random_device::_M_getval: rdrand or rdseed, as libstdc++ has it by
 * default. Where it reads a file or asks the kernel, that is an event besides. */
DG_WRAP(unsigned, _ZNSt13random_device9_M_getvalEv, (void *device))
{
	unsigned value = DG_CALL(_ZNSt13random_device9_M_getvalEv)(device);

	if (!dg_engaged())
		return value;
	return (unsigned)dg_engine(DG_OP_VALUE, (long)device, 0, value, DG_CALLER(), 0);
}

/* libc++'s. */
DG_WRAP(unsigned, _ZNSt3__113random_deviceclEv, (void *device))
{
	unsigned value = DG_CALL(_ZNSt3__113random_deviceclEv)(device);

	if (!dg_engaged())
		return value;
	return (unsigned)dg_engine(DG_OP_VALUE, (long)device, 0, value, DG_CALLER(), 0);
}
