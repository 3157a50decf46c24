// Package ptrace wraps ptrace(2) and wait4(2) as a recorder and a replayer need them. Processes
// are seized, and stops are values. Registers, memory and debug registers are read and written
// without a copy of the kernel's structures in each caller.
//
// Linux allows requests of a tracee only from the kernel thread that attached to it. Everything
// here except Signal must therefore be called inside one OnThread.
package ptrace
