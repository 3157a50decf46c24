// The notes are counted without their lock.
// CAUSE kind=order-violation|atomicity-violation|use-after-free
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: c 20
// RUNS pass: c 150
#ifndef FIXED
#define COUNTED_UNDER_LOCK 0 // BUG
#endif
#include "notes.h"
