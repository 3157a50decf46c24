// The label of the front is allocated too small.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: front a-text-that-is-longer-than-labels-are
// RUNS pass: front short
#ifndef FIXED
#define FRONT_SIZE(text) sizeof(struct label) // BUG
#endif
#include "stock.h"
