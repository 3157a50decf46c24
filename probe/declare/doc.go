// Package declare writes declarations of C for what debug code names of a program: its variables, functions, constants and types.
// The program's debug information may be hostile. No name of it is written that the debug code does not have itself: members that
// the code does not name are bytes, and types get names of this package. The layout of structures is written down byte by byte, and
// the compiler is made to check it.
package declare
