// Package ending reports what a recorded program wrote to its standard streams before it ended
// itself, and which of its system calls had failed.
//
// The log of a recording has each system call with its result. Of the data that the program passed
// to the kernel it has the paths and a digest. So the calls are found in the log, and a replay is
// stopped after each of them: there the text is in the program's memory, and the thread's stack has
// the code that made the call.
package ending
