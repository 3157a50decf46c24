// That there are enough tickets is asked before the lock is released.
// CAUSE kind=atomicity-violation variable=tickets
// FAILS signal=SIGABRT says="-2 tickets at the desk"
// RUNS fail: a 5 15
// RUNS fail: a 15 5
// RUNS pass: a 5 130
#ifndef FIXED
#define ASKED_UNDER_LOCK 0 // BUG
#endif
#include "desk.h"
