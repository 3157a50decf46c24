// The shelf of the bolts is wrong where the tools are loaded.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: count bolts
// RUNS pass: count nails
#ifndef FIXED
#define BOLTS -300000000 // BUG
#endif
#include "stock.h"
