/* The library: one translation unit, the parts in the order in which they
 * build on each other. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "agent.h"
#include "hot.h"

/* For those who look at the process from outside. */
DG_EXPORT uint64_t diagnose_agent_root;

#include "lock.c"
#include "region.c"
#include "canary.c"
#include "text.c"
#include "options.c"
#include "start.c"
#include "paths.c"
#include "thread.c"
#include "cfi.c"
#include "unwind.c"
#include "site.c"
#include "error.c"
#include "super.c"
#include "quarantine.c"
#include "large.c"
#include "check.c"
#include "spare.c"
#include "heap.c"
#include "invalid.c"
#include "release.c"
#include "malloc.c"
#ifndef DG_RECORD
#include "load.c"
#endif
#include "cxx.c"

#ifdef DG_RECORD
#include "wrap_start.c"
#include "wrap_thread.c"
#include "wrap_order.c"
#include "wrap_family.c"
#include "wrap_load.c"
#include "wrap_value.c"
#include "wrap_next.c"
#include "wrap_real.c"
#include "wrap_mutex.c"
#include "wrap_lock.c"
#include "wrap_sync.c"
#include "wrap_c11.c"
#include "wrap_point.c"
#endif
