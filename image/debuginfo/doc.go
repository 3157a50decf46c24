// Package debuginfo answers questions about one object from its DWARF: which
// function and inlined calls cover an address, which line, which variables
// are in scope and where they live, and what their types are.
//
// All addresses are link-time addresses of the object; package image adds the
// load bias. Units are found by .debug_aranges if it lists them, and parsed on
// demand; compressed sections are decompressed only as far as needed. So a
// lookup in an object with hundreds of megabytes of DWARF reads only a small
// part of it.
package debuginfo
