// Package ending tells what a recorded program wrote to its standard streams before it
// ended itself, and which of its system calls had failed.
//
// The log of a recording has each system call with its result, and of what the program
// handed to the kernel the paths and a digest. So the calls are found in the log, and a
// replay is stopped after each of them, where the text is in the program's memory and the
// thread's stack tells the code that made the call.
package ending
