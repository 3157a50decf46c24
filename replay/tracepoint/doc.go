// Package tracepoint stops the threads of a replay at instructions of the program, each time that a
// thread arrives at one, and resumes them.
// At instructions with a Rule, code in the process evaluates expressions without a stop where it can.
//
// An instruction is moved into memory of the tool, after an int3, and a jump to there replaces it
// (package inline): an arrival is one stop, and the instruction needs no step. Where there is no
// room for the jump, and at instructions that are added while the program runs, an int3 replaces
// the instruction, which is then stepped over.
package tracepoint
