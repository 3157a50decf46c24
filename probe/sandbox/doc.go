// Package sandbox runs debug code on the data of a stopped program, in a process that is not the program's and cannot change it. The
// process has a stack, a heap and a C library of its own. Pages of the program are copied to it when the code reads them, at their
// addresses, and it can only read them: so pointers of the program lead to what the program has there, and a store to the program's
// memory is a fault. The process can make no system calls but those that give it memory.
package sandbox

import _ "embed"

var (
	//go:embed src/runtime.c
	runtimeText []byte
	//go:embed src/control.h
	controlText []byte
)
