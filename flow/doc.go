// Package flow follows values exactly through a part of a replay.
//
// Record executes the part one instruction at a time and keeps, for each, the thread and the registers. From these follow
// the addresses of all memory operands, so each byte that any thread read or wrote is known. One thread
// runs at a time, so the steps of all threads are one order in time. What happens in the recording library, a
// system call or the heap, is one step of its own, with the memory that the log says the call wrote.
//
// Trace.Define goes backwards: it finds the step that gave bytes of a register or of memory their
// value, and says of which bytes it made them. Nothing is guessed from code that was not executed; a step whose
// effect is not known ends the way (Unknown).
package flow
