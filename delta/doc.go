// Package delta compares the access logs of failing and passing runs of one
// program, variable by variable.
//
// Runs differ in length, in thread numbers and in how often a loop went round.
// So nothing is compared by its number or count: an access's counterparts are
// those of the same variable (by name), from the same code (Context.Key), in the
// same kind of context, which is the function that the thread was started with,
// or a signal's handler. What is compared of such a place is whether a run comes
// there at all, the values that it reads and writes, and whose values it reads
// (OS-level replay analysis, section 3.3).
//
// Runs numbers the variables, the code and the kinds of context of all logs
// together; patterns stands on that.
package delta
