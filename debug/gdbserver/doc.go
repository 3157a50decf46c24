// Package gdbserver lets gdb move through a recording: it speaks gdb's remote serial protocol ("GDB Remote Serial Protocol"
// in gdb's manual) for a debug.Session. What gdb changes, and the
// functions that it calls, are in a copy of the program.
package gdbserver
