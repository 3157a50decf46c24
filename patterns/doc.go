// Package patterns finds the orders of accesses that may explain a concurrency
// failure, and ranks them.
//
// A context is a thread, or a signal's handler in the thread that it interrupted. Two accesses
// to one word by two contexts, of which one writes, with no other access between that conflicts
// with either, are RW, WR or WW. Two successive accesses of one context, with another context's
// in between, are a pattern of three if no serial order gives the same result: RWR, RWW, WWR,
// WRW (Lu et al., AVIO, ASPLOS 2006; OS-level replay analysis, section 3.3). Adjacent reads
// commute, so the order of several readers does not matter, and a loop of reads counts as one.
// Two words belong together if a context accesses both within a short distance. Another context
// that accesses both in between sees or leaves half of a change (Lu et al., MUVI, SOSP 2007).
//
// An order that the program itself enforces (by thread creation, join, a semaphore, a critical
// section) could not have been different. It is marked and ranked last.
package patterns
