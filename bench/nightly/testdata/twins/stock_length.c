// A good that is not there has no name, nor a length of it.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: length green
// RUNS pass: length nails
#ifndef FIXED
#define UNLISTED_LENGTH(good) 0 // BUG
#endif
#include "stock.h"
