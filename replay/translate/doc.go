// Package translate executes a stopped thread's code at nearly full speed and reports each of its instructions with the
// registers before it.
//
// It copies the code, block by block, into memory of the tool's in the process. After each instruction the copy stores the
// general registers that the instruction has written into a log, by mov at fixed places, so no flag changes. From the
// registers at the start and the log follow those before every instruction; none of them is computed by a model of the
// instruction, but for the pointers of repeated string instructions, and the stack pointer of calls and returns. The
// program's text and stack stay as they are, and calls push the program's own return addresses.
//
// What is not copied ends a run: the recording library, system calls, instructions whose effect depends on where they are or
// on the debugger, code that the process may write, and the breakpoints of the thread. The caller steps over these.
package translate
