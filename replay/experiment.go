package replay

import (
	"diagnose/evidence"
)

// Watch is a word of the process to be watched: 1, 2, 4 or 8 bytes at an
// address that is a multiple of that (Intel SDM volume 3, 18.2.4).
type Watch struct {
	Addr evidence.Addr
	Size int
	// Writes leaves reads out: the hardware knows no watch of reads alone.
	Writes bool
}

// LockWord is a word of 4 bytes by which a lock of the program's tells whether it
// is held.
type LockWord struct {
	Addr evidence.Addr
	// Owner: the word has the id of the thread that holds the lock. Without it, the
	// word is 0 while nobody does.
	Owner bool
}

// MostLocks is how many lock words a replay can look at.
const MostLocks = 64

// Backend is a mechanism that traces watches.
type Backend string

// The back ends.
const (
	BackendPtrace Backend = "ptrace" // debug registers set by ptrace, a stop a hit
	BackendBPF    Backend = "bpf"    // perf breakpoints, whose BPF program reads the word in the kernel
	BackendPerf   Backend = "perf"   // perf breakpoints with the registers in their ring
	BackendProbe  Backend = "probe"  // code of ours at the instructions that are known (Options.Probes)
)

// Hit is one access to a watched word.
type Hit struct {
	// Number counts the hits of this replay, from 0; it is the same in every
	// replay of the same recording with the same watches.
	Number uint64
	// Watch indexes Options.Watches; one instruction may hit several, each of
	// which is a Hit of its own.
	Watch int
	// Thread is the recording's number, Ordinal its last event, Position the
	// number of events of all threads done before.
	Thread            uint32
	Ordinal, Position uint64
	// PC is the instruction that made the access. SP is the stack pointer then.
	PC, SP evidence.Addr
	Kind   evidence.AccessCode
	By     evidence.By
	// Old and New are the watched bytes before and after.
	Old, New uint64
	// Caller is the innermost return address outside of our own library and of
	// libc that could be had cheaply; 0: the program's own instruction made the access.
	Caller evidence.Addr
	// Held has a bit for each of Options.Locks: the hit's thread holds it, or, of a
	// word without an owner, somebody does.
	Held uint64
}

// Edit changes the run at one point: an experiment. What the process does after
// it is no longer what was recorded, so Options.Free must be set.
type Edit struct {
	Kind EditKind
	// At is where; unless OnHit, then it is the hit of that number of the
	// replay's watches.
	At    evidence.Moment
	OnHit bool
	Hit   uint64
	// Bytes is how much larger the object is made (EditPad); Until is the event
	// of the thread after which a delayed signal comes (EditDelaySignal); 0: never.
	// With Raised it comes when Stopped.Raise says so, and its handler's events are
	// looked for after Until, which may be before the signal's own.
	Bytes  uint64
	Until  uint64
	Raised bool
	// Addr, Value and Size are what EditStore stores; Size is 1 to 8.
	Addr  evidence.Addr
	Value uint64
	Size  int
}

// EditKind is what an Edit does.
type EditKind string

// The kinds of edit.
const (
	// EditUndo gives the watched word the value back that it had before the hit.
	EditUndo EditKind = "store skipped"
	// EditSkipCall returns from the function at whose first instruction At is,
	// with 0 in rax: a free withheld.
	EditSkipCall EditKind = "call skipped"
	// EditPad adds to the size that the allocation at whose first instruction
	// At is is asked for.
	EditPad EditKind = "object padded"
	// EditStore gives a word of memory another value.
	EditStore EditKind = "value replaced"
	// EditDelaySignal lets the signal that is the thread's event At.Ordinal come
	// later. There may be several, in their order, of one thread and with one Until.
	EditDelaySignal EditKind = "signal delayed"
)
