// Package value reads typed variables of a frame and shows them as a person
// would write them.
//
// A variable is first located: its DWARF expression is evaluated against the
// frame's registers (location.go, expression.go). Then its bytes are read from
// where they are, and formatted by its type. What cannot be read is said with
// the reason and is never shown as a zero.
//
// Everything in a dead process may be garbage, sizes and pointers above all,
// so every walk is bounded by Options, and what was left out is said.
package value
