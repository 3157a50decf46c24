// Package tally counts the judgements on recordings of programs with a bug of their threads, and writes the
// page about them.
package tally
