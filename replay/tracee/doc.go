// Package tracee is one replayed process under ptrace(2): its threads, their registers and stops,
// its memory and mappings, the engine's data in it, and the calls that are made in it. It decides
// nothing about the replay. Only the memory may be used outside of the kernel thread that traces
// the process.
package tracee
