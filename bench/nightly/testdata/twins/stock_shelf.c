// A good that is not there has no shelf.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: shelf green
// RUNS pass: shelf nails
#ifndef FIXED
#define UNLISTED_SHELF(good) 0 // BUG
#endif
#include "stock.h"
