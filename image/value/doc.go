// Package value reads typed variables of a frame and formats them for readers.
//
// A variable is first located: its DWARF expression is evaluated against the
// frame's registers (location.go, expression.go). Then its bytes are read from
// where they are, and formatted by its type. For a value that cannot be read
// the reason is shown, never a zero.
//
// Everything in a dead process may be garbage, sizes and pointers above all, so
// every walk is bounded by Options, and the output names the omitted parts.
package value
