// The notes are told of without their lock.
// CAUSE kind=order-violation|atomicity-violation|use-after-free
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: t 20
// RUNS pass: t 150
#ifndef FIXED
#define TOLD_UNDER_LOCK 0 // BUG
#endif
#include "notes.h"
