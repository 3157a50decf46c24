// Tickets are counted without the lock that they are sold under.
// CAUSE kind=atomicity-violation variable=tickets
// FAILS signal=SIGABRT says="7 tickets at the desk"
// RUNS fail: c 5 15
// RUNS fail: c 15 5
// RUNS pass: c 5 130
#ifndef FIXED
#define COUNTED_UNDER_LOCK 0 // BUG
#endif
#include "desk.h"
