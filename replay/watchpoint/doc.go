// Package watchpoint traces the accesses to words of a replayed process: by debug registers, by
// perf events whose BPF program reads the words in the kernel, by code at the known
// instructions, or by protected pages. It finds the instruction of an access, its kind, and on whose behalf it was made.
package watchpoint
