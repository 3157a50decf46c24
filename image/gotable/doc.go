// Package gotable reads the function table that the Go linker puts into every
// program (.gopclntab): names, files, lines, frame sizes and inlined calls. The
// runtime needs it for its own tracebacks, so stripping does not remove it.
//
// debug/gosym reads names, files and lines of it; frame sizes and inlined calls
// it does not, and without the latter a line would be given to the wrong
// function. The table is read from the memory of a process, as far as it is
// needed.
package gotable
