/* The library: one translation unit, the parts in the order in which they
 * build on each other. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "agent.h"
#include "heap/hot.h"

#include "heap/lock.c"
#include "heap/region.c"
#include "heap/canary.c"
#include "heap/text.c"
#include "heap/options.c"
#include "heap/start.c"
#include "heap/paths.c"
#include "heap/thread.c"
#include "heap/cfi.c"
#include "heap/unwind.c"
#include "heap/site.c"
#include "heap/error.c"
#include "heap/super.c"
#include "heap/quarantine.c"
#include "heap/large.c"
#include "heap/check.c"
#include "heap/spare.c"
#include "heap/heap.c"
#include "heap/invalid.c"
#include "heap/release.c"
#include "heap/malloc.c"
#ifndef DG_RECORD
#include "heap/load.c"
#endif
#include "heap/cxx.c"

#ifdef DG_RECORD
#include "wrap/start.c"
#include "wrap/turn.c"
#include "wrap/order.c"
#include "wrap/thread.c"
#include "wrap/family.c"
#include "wrap/load.c"
#include "wrap/value.c"
#include "wrap/next.c"
#include "wrap/real.c"
#include "wrap/mutex.c"
#include "wrap/lock.c"
#include "wrap/sync.c"
#include "wrap/c11.c"
#include "wrap/point.c"
#endif
