// Package image shows a dead or stopped process, read from a core file or
// from the living process, as one Process: its memory, mappings, threads and
// the objects mapped into it, with names for addresses.
//
// A read that fails is an error, never a zero.
package image
