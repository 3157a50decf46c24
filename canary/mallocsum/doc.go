// Package mallocsum sums up the heap of glibc's malloc in a process that ran without the agent: the live objects by size and by type, the
// largest of them and what points to them, the free memory, and the objects that no pointer leads to.
//
// Which objects are live follows from malloc's own structures (package ptmalloc). Types are inferred: from the table of virtual functions that
// an object begins with, and from typed pointers that lead to it. So is reachability: every word of the program's memory that has the address of an object
// counts as a pointer.
package mallocsum
