// The label of the back is allocated too small.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: back a-text-that-is-longer-than-labels-are
// RUNS pass: back short
#ifndef FIXED
#define BACK_SIZE(text) sizeof(struct label) // BUG
#endif
#include "stock.h"
