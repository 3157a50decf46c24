// Package patterns finds the orders of accesses that may explain a concurrency
// failure, and ranks them.
//
// A context is a thread, or a signal's handler in the thread that it interrupted.
// Two accesses to one word by two contexts, of which one writes, with no other
// access between that conflicts with either, are RW, WR or WW. Two accesses of
// one context that follow each other there, with another context's between, are
// a pattern of three if no serial order gives the same: RWR, RWW, WWR, WRW (Lu et
// al., AVIO, ASPLOS 2006; OS-level replay analysis, section 3.3). Reads that stand
// next to each other commute, so who of several readers was first changes nothing, and a loop of
// reads is as one. Two words belong together if a context accesses both close by;
// another context that accesses both in between saw, or left, half of a change
// (Lu et al., MUVI, SOSP 2007).
//
// An order that the program itself enforces (created, joined, posted, a
// critical section) could not have been another: it is marked, and comes last.
package patterns
