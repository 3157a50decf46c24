// Package gdbserver lets gdb move through a recording: it speaks gdb's remote serial protocol ("GDB Remote Serial Protocol"
// in gdb's manual) for a debug.Session. The program's state is never changed.
package gdbserver
