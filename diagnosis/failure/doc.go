// Package failure says how a dead or stopped process failed: the kind of failure, the memory that
// the processor refused, the messages of libraries that gave up, the exception that was not caught,
// the threads that wait for each other.
//
// It only reads and judges: it changes nothing in the process and prints nothing. Memory that
// cannot be read is left out and named as a limit.
package failure
