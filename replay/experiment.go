package replay

import (
	"diagnose/evidence"
)

// LockWord is a word of 4 bytes that says whether a lock of the program is held.
type LockWord struct {
	Addr evidence.Addr
	// Owner: the word has the id of the thread that holds the lock. Otherwise it is 0 while the
	// lock is free.
	Owner bool
}

// MostLocks is the number of lock words that a replay can read.
const MostLocks = 64

// Backend is a mechanism that traces watches.
type Backend string

// The back ends.
const (
	BackendPtrace Backend = "ptrace" // debug registers set by ptrace, a stop at each hit
	BackendBPF    Backend = "bpf"    // perf breakpoints, whose BPF program reads the word in the kernel
	BackendPerf   Backend = "perf"   // perf breakpoints with the registers in their ring
	BackendProbe  Backend = "probe"  // code of ours at the known instructions (Watching.Probes)
)

// Hit is one access to a watched word.
type Hit struct {
	// Number counts the hits of this replay, from 0; it is the same in every
	// replay of the same recording with the same watches.
	Number uint64
	// Watch indexes Watching.Watches. One instruction may hit several, each of which is a separate
	// Hit.
	Watch int
	// Thread is the recording's number, Ordinal that of its last event, Position the number of
	// events of all threads done before.
	Thread            uint32
	Ordinal, Position uint64
	// PC is the instruction that made the access, SP the stack pointer then.
	PC, SP evidence.Addr
	Kind   evidence.AccessCode
	By     evidence.By
	// Old and New are the watched bytes before and after.
	Old, New uint64
	// Caller is the innermost return address outside of our own library and of libc, as far as it
	// can be found cheaply; 0: the program's own instruction made the access.
	Caller evidence.Addr
	// Held has a bit for each of Watching.Locks: the hit's thread holds it or, for a word without
	// an owner, any thread does.
	Held uint64
}

// Edit changes the run at one point: an experiment. After it the process may differ from the
// recording, so edits are part of a FreeRequest.
type Edit struct {
	Kind EditKind
	// At is the point of the change. With OnHit it is the replay's hit with the number Hit
	// instead.
	At    evidence.Moment
	OnHit bool
	Hit   uint64
	// Bytes is how much larger the object is made (EditPad). Until is the event of the thread
	// after which a delayed signal arrives (EditDelaySignal); 0: never. With Raised the signal
	// arrives when Stopped.Raise is called, and its handler's events are expected after Until,
	// which may be before the signal's own.
	Bytes  uint64
	Until  uint64
	Raised bool
	// Addr, Value and Size describe the store of EditStore; Size is 1 to 8.
	Addr  evidence.Addr
	Value uint64
	Size  int
}

// EditKind is what an Edit does.
type EditKind string

// The kinds of edit.
const (
	// EditUndo restores the watched word's value from before the hit.
	EditUndo EditKind = "store skipped"
	// EditSkipCall returns from the function whose first instruction is at At, with 0 in rax: a
	// free is suppressed.
	EditSkipCall EditKind = "call skipped"
	// EditPad increases the size in an allocation call. At is the first instruction of the called
	// function.
	EditPad EditKind = "object padded"
	// EditStore gives a word of memory another value.
	EditStore EditKind = "value replaced"
	// EditDelaySignal delays the signal that is the thread's event At.Ordinal. There may be
	// several, in their order, of one thread and with one Until.
	EditDelaySignal EditKind = "signal delayed"
)
