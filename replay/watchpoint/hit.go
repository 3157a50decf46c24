package watchpoint

import "diagnose/evidence"

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
	// Turn counts how often a thread had got the right to run, and is the same in every replay of
	// a schedule. It is 0 where it orders nothing: the thread ran without the right, as it does
	// before its first event, or the recording's engine does not count.
	Turn uint64
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
	BackendPages  Backend = "pages"  // protected pages and single steps, where debug registers do not stop a thread
)
