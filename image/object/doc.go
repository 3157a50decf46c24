// Package object opens ELF objects as they are mapped into a process, and
// finds the separate files that hold their debug information.
//
// Files are memory mapped and read on demand. Everything in them is treated
// as hostile: sizes are checked against the file before anything is
// allocated, and errors say file, section and offset.
package object
