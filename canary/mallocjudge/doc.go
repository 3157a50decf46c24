// Package mallocjudge judges a failure by the heap of the C library, in a process that ran
// without the agent. It reports the first header of a chunk that was overwritten and the
// object before it, links of free objects that were overwritten, which object a pointer of the
// failure points into, whether it is free and in which list, and which pointers to it there are.
//
// That a header was overwritten is read from the process. From which object is inferred from the
// bytes before it; where those do not tell, the finding names both neighbours.
//
// Of the heaps of jemalloc and tcmalloc it says which object the pointers of the failure point into.
package mallocjudge
