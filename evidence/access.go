package evidence

// Watched is a variable, or a part of one, that passes watch.
type Watched struct {
	// Name is in the program's terms ("cfg.workers[3].state", or
	// "0x7f..:8"), Type as the program writes it. Equal names in the logs of two
	// recordings are the same variable.
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	// Identity says the same for programs.
	Identity Identity `json:"identity"`
	// Address is its address, Size its size in bytes.
	Address Addr `json:"address"`
	Size    int  `json:"size"`
	// Hits counts the accesses seen, Lost those that are known to have
	// happened and of which nothing is known. Untraced says why there are none
	// at all; empty for one that was traced.
	Hits     uint64 `json:"hits"`
	Lost     uint64 `json:"lost,omitempty"`
	Untraced string `json:"untraced,omitempty"`
	// Pass is the pass that traced it, from 1.
	Pass int `json:"pass,omitempty"`
	// Instructions, if it is not 0, says that only the accesses of that many known
	// instructions were seen: other code may have accessed it, too. Unseen is how often its value had changed since the
	// last access that was seen.
	Instructions int    `json:"instructions,omitempty"`
	Unseen       uint64 `json:"unseen,omitempty"`
}

// Partial reports whether there may be accesses that were not seen.
func (w *Watched) Partial() bool {
	return w.Untraced != "" || w.Lost > 0 || w.Instructions > 0
}

// By says what code made an access.
type By uint8

// Who accesses memory.
const (
	ByProgram By = iota // an instruction of the program or of one of its libraries
	ByCall              // a system call, on the program's behalf
	ByHeap              // the heap, which fills and guards objects at malloc and free
)

// Access is one access to a watched word, in the order of the replay. It is
// small, for logs hold millions.
type Access struct {
	// Position counts the events of all threads that were done before.
	Position uint64
	// Turn counts how often a thread had got the right to run. One thread runs at a
	// time, so accesses of two threads have different Turns, and those of one log are
	// in its order. 0: it is not known.
	Turn uint64
	// Ordinal is that of the thread's last event before; PC the instruction
	// that made the access: with Hit what finds it again in another replay.
	Ordinal uint64
	PC      Addr
	// Hit counts the hits of the pass, from 0.
	Hit uint64
	// Old and New are the watched bytes before and after, little-endian; of a
	// watch of fewer than 8 bytes the rest is 0.
	Old, New uint64
	// Variable and Context index the AccessLog's tables, Locks its lock sets.
	Variable, Context, Locks int32
	Thread                   uint32
	// Offset is that of the watched word in the variable, Size the word's.
	Offset uint32
	Size   uint8
	Kind   AccessCode
	By     By
	// Handler is the signal whose handler the thread was in; 0 is none.
	Handler uint8
}

// AccessCode is an AccessKind in one byte.
type AccessCode uint8

// The kinds of access.
const (
	CodeUnknown AccessCode = iota // the instruction could not be decoded: read or written
	CodeRead
	CodeWrite
	CodeReadWrite
)

// Kind is the code's name; empty for CodeUnknown.
func (c AccessCode) Kind() AccessKind {
	return [...]AccessKind{"", Read, Write, ReadWrite}[c&3]
}

// Context is where accesses come from, in terms that are the same in every run:
// the innermost places of the program's code.
type Context struct {
	// Site is the program's own line that is responsible (of a memcpy its
	// caller), Caller the one that called its function; each may be unset.
	Site   Site `json:"site"`
	Caller Site `json:"caller"`
	// Key is equal for equal code: function and line, or module and offset
	// without debug information.
	Key string `json:"key"`
}

// Lock is one that a thread holds.
type Lock struct {
	// Address is the lock's, Name its variable where that is known.
	Address Addr   `json:"address"`
	Name    string `json:"name,omitempty"`
	// Path is how the thread's frames name a lock without a Name: "from->lock".
	Path string `json:"path,omitempty"`
	// Shared says that it is held for reading.
	Shared bool `json:"shared,omitempty"`
	// Taken is the holder's event with which it got the lock: accesses with equal
	// ones are in one critical section. (Or in several of one thread, without
	// another holder in between: such acquisitions are no events.)
	Taken uint64 `json:"taken,omitempty"`
}

// Acquisition is a lock that a thread takes while it may hold others: what
// orders of locks are seen from.
type Acquisition struct {
	Position, Turn, Ordinal uint64
	Thread                  uint32
	// Context indexes the AccessLog's table, Held its lock sets, without Lock.
	Context, Held int32
	Lock          Lock
	// Waiting: the lock was never acquired; the thread waited for it at the end.
	Waiting bool
}

// AccessLog is what the passes over one recording saw.
type AccessLog struct {
	// Recording is the recording's directory, Failed whether its run failed.
	Recording string
	Failed    bool
	Variables []Watched
	Contexts  []Context
	// LockSets are sets of held locks; the first is the empty one.
	LockSets [][]Lock
	// Threads are the names of the recording's threads, by their number.
	Threads  map[uint32]ThreadRef
	Accesses []Access
	// Order says what the program itself orders, for happens-before.
	Order []OrderEdge
	// Acquisitions are those made by a thread that held another lock, and those
	// that never ended, in order.
	Acquisitions []Acquisition
	// Calls are the system calls that may have changed the watched memory unseen.
	// Others: other processes may have changed it, too, or calls that the recorder does not know.
	Calls  []Call
	Others bool
	// Contradiction is what Contradicts found when the log was made.
	Contradiction *Contradiction
	// Cut says that a pass ended before the recording did, so that accesses are missing.
	Cut bool
	Coverage
}

// OrderEdge says that all that a thread did up to an event of its own happened
// before what another did from one of its events on: create and start, exit and
// join, post and wait, unlock and lock.
type OrderEdge struct {
	From, To               uint32
	FromOrdinal, ToOrdinal uint64
	// Lock: the edge is that of a lock, which might have been the other way
	// round.
	Lock bool
}

// Coverage says how much the passes saw.
type Coverage struct {
	// Passes counts the replays with watches, Hits the accesses that they saw and
	// Lost those that they missed; Backend is the mechanism that traced.
	Passes  int    `json:"passes"`
	Hits    uint64 `json:"hits"`
	Lost    uint64 `json:"lost,omitempty"`
	Backend string `json:"backend"`
	// Nanoseconds is the wall time of all passes.
	Nanoseconds int64 `json:"nanoseconds"`
	// Limits are what could not be traced, or told.
	Limits []Limit `json:"limits,omitempty"`
}
