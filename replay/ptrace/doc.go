// Package ptrace is ptrace(2) and wait4(2) as a recorder and a replayer need
// them: processes are seized, stops are values, and registers, memory and debug
// registers are read and written without a copy of the kernel's structures in
// each caller.
//
// Linux lets only the kernel thread that attached make requests of a tracee.
// Everything here but Signal must therefore be called inside one OnThread.
package ptrace
