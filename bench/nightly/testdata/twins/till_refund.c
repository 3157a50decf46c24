// What another refund does while one is printed is undone.
// CAUSE kind=atomicity-violation variable=cash
// FAILS signal=SIGABRT says="93 in the till"
// RUNS fail: r 5 15
// RUNS fail: r 15 5
// RUNS pass: r 5 130
#ifndef FIXED
#define RETURNED_AS_ONE 0 // BUG
#endif
#include "till.h"
