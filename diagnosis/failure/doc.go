// Package failure says what a dead or stopped process tells of its end: which
// kind of failure it was, what memory the processor refused, what the
// libraries said when they gave up, which exception nobody caught, which
// threads wait for each other.
//
// It reads and judges only: nothing of the process is changed, nothing is
// printed. What cannot be read is left out and named as a limit.
package failure
