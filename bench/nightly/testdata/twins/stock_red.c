// The shelf of the red paint is wrong where the paints are loaded.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: count red
// RUNS pass: count nails
#ifndef FIXED
#define RED -500000000 // BUG
#endif
#include "stock.h"
