// Package patch finds the code of a program that a jump can replace while its threads
// run: whole instructions that do the same elsewhere and that nothing enters in the
// middle; and makes the code that does the same elsewhere. It reads bytes; the caller
// writes to the process.
package patch
