// Package transfer says of which bytes the results of an instruction are made: which are copies, which
// are computed of what, and which are constants.
//
// The memory operands and registers of an instruction are package x86's. This package adds what a
// slice through executed code needs: the flags, each by itself, the bytes of vector registers, what
// a write of a part of a register does to the rest, and moves that only rearrange bytes. A test
// compares it with the processor: it changes each byte of the sources and looks at the results.
package transfer
