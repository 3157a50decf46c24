// Package sites finds the system calls, the reads of the time-stamp counter and the accesses of
// shared variables in the code of object files, remembers them between runs, and makes the
// tables of a process by which the engine intercepts them.
package sites
