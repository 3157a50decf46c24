// Package delta compares the access logs of failing and passing runs of one
// program, variable by variable.
//
// Runs differ in length, in thread numbers and in the iterations of their
// loops. So nothing is compared by its number or count. The counterparts of an
// access are the accesses to the same variable (by name), from the same code
// (Context.Key), in the same kind of context: the function that the thread was
// started with, or a signal's handler. For such a place the comparison covers
// whether a run reaches it at all, the values that it reads and writes, and
// whose values it reads (OS-level replay analysis, section 3.3).
//
// Runs numbers the variables, the code and the kinds of context of all logs
// together; package patterns uses these numbers.
package delta
