// Package expected compares what the failing code expects of its operands with what the stopped process has: an object of a
// class, a format that is a constant, a divisor that is not zero, a pointer that is not null. It also tells where the source takes a
// value from something else that optimised code has in itself (Folded).
//
// What the code expects is read from its debug information, and where that does not tell, from the failing line and
// column of the source. Nothing is told where these do not agree with the process, or where a name may be another's.
package expected
