// Package stackjudge finds the array of a frame that was written past its end, in the memory of a process that
// has no record of the writes: a core, or a stopped process.
//
// It starts from a word that the compiler keeps in a frame, and that is known to be bad: a return address that
// the process failed at, a register that was restored from the frame and is no address, a stack guard. An array
// below that word fits if its contents continue past its end, over the word, as one run: text, a pattern, numbers,
// or bytes that are the same elsewhere. All of it is inferred.
package stackjudge
