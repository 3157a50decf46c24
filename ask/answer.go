package ask

import (
	"time"

	"diagnose/evidence"
)

// Answer is what a recording says to a question.
type Answer struct {
	// Recording is its directory; Failed that the recorded run did.
	Recording string `json:"recording"`
	Failed    bool   `json:"failed"`
	// Form is writes, last-write, values, calls, executed, did or holders; Asked is its expression, function, line or thread.
	Form  Form   `json:"form"`
	Asked string `json:"asked"`
	Span  Span   `json:"span"`
	// Threads are those of the recording.
	Threads []evidence.ThreadRef `json:"threads"`
	// Memory is what an expression names.
	Memory *Memory `json:"memory,omitempty"`
	// Places are where a function or a line has code.
	Places []Place `json:"places,omitempty"`
	// The rows of the form, in the order in which they happened.
	Writes   []Write   `json:"writes,omitempty"`
	Values   []Reading `json:"values,omitempty"`
	Calls    []Call    `json:"calls,omitempty"`
	Executed []Arrival `json:"executed,omitempty"`
	Did      []Deed    `json:"did,omitempty"`
	Holds    []Hold    `json:"holds,omitempty"`
	// Waits are threads that waited for the lock when the span ended.
	Waits []Wait `json:"waits,omitempty"`
	// LeftOut counts the rows beyond the bound. More: the replay ended at the bound, so there may be others.
	LeftOut  uint64   `json:"left_out,omitempty"`
	More     bool     `json:"more,omitempty"`
	Coverage Coverage `json:"coverage"`
	// Elapsed is the time that the answer took, in nanoseconds.
	Elapsed time.Duration `json:"nanoseconds"`
}

// Rows is how many rows the answer has.
func (a *Answer) Rows() int {
	return len(a.Writes) + len(a.Values) + len(a.Calls) + len(a.Executed) + len(a.Did) + len(a.Holds)
}

// Span is the part of the recording that the question is about.
type Span struct {
	// From and Until are its bounds, Until is not in it; missing: the start and the end of the recording.
	From  *Instant `json:"from,omitempty"`
	Until *Instant `json:"until,omitempty"`
	// Events are those of the whole recording.
	Events uint64 `json:"events"`
}

// Instant is when something happened.
type Instant struct {
	Moment evidence.Moment `json:"moment"`
	// At is the moment as commands take it: THREAD:EVENT[:PC[:COUNT]].
	At string `json:"at"`
	// Position is the number of events that all threads had done.
	Position uint64 `json:"position"`
}

func instant(m evidence.Moment, position uint64) Instant {
	return Instant{Moment: m, At: m.String(), Position: position}
}

// Home is what memory is a part of.
type Home string

// The kinds of memory.
const (
	HomeStatic Home = "static" // a variable with static storage
	HomeHeap   Home = "heap"   // an object of the heap
	HomeStack  Home = "stack"  // the frame of a call
	HomeOther  Home = "other"  // memory of which it is not known who uses it
)

// Memory is what an expression names at the end of the span.
type Memory struct {
	// Address is the first byte, Size the number of bytes; Type is as the program writes it.
	Address evidence.Addr `json:"address"`
	Size    int           `json:"size"`
	Type    string        `json:"type,omitempty"`
	Home    Home          `json:"home"`
	// In is the function in whose frame the expression was evaluated; missing: it has no local variables.
	In *evidence.Site `json:"in,omitempty"`
	// Object is the heap object that the memory is in.
	Object *Object `json:"object,omitempty"`
	// Frame is the function whose frame the memory is in.
	Frame *evidence.Site `json:"frame,omitempty"`
	// Since is when the object was allocated, or the call began. Before, the memory was of something else, whose writes are no
	// writes of the expression: Earlier of them were left out.
	Since   *Instant `json:"since,omitempty"`
	Earlier uint64   `json:"earlier,omitempty"`
	// Proof of what the memory is: replayed, or inferred where the compiler may use it for other variables of the call, or where
	// it is not known since when it is what it is.
	Proof evidence.Proof `json:"proof"`
}

// Object is an object of the heap.
type Object struct {
	Address evidence.Addr `json:"address"`
	// Size is in bytes, as it was asked for.
	Size  uint64             `json:"size"`
	State evidence.HeapState `json:"state"`
	// Allocated is the line of the program that allocated it; missing: it is not known.
	Allocated *evidence.Site `json:"allocated,omitempty"`
}

// Author is whose code made a write.
type Author string

// The authors of writes.
const (
	ByProgram Author = "program" // an instruction of the program or of one of its libraries
	ByCall    Author = "call"    // a system call
	ByHeap    Author = "heap"    // the heap, which fills objects when they are allocated and freed
	ByKernel  Author = "kernel"  // no instruction of the process: the kernel wrote on its own
)

// Write is a write of memory.
type Write struct {
	Instant
	// Thread wrote.
	Thread uint32 `json:"thread"`
	// Part is the part that was written, as the program calls it; missing: all of the expression.
	Part string `json:"part,omitempty"`
	// Address is that of the part, Size its bytes.
	Address evidence.Addr `json:"address"`
	Size    int           `json:"size"`
	// Old and New are the values before and after, in the part's type.
	Old string `json:"old"`
	New string `json:"new"`
	// Site is the line of the program that is responsible.
	Site evidence.Site `json:"site"`
	By   Author        `json:"by"`
	// Call is the system call.
	Call string `json:"call,omitempty"`
	// Signal is the number of the signal whose handler ran.
	Signal int `json:"signal,omitempty"`
	// Locks are the mutexes that the thread held, and the rwlocks that it held for writing.
	Locks []evidence.Lock `json:"locks,omitempty"`
	// Late: the change was found at this time, and may have been made before.
	Late bool `json:"late,omitempty"`
	// Freed: the object had been freed.
	Freed bool `json:"freed,omitempty"`
	// Stack is that of the last write.
	Stack *evidence.Stack `json:"stack,omitempty"`
}

// Reading is the value of an expression from a moment on. At the start of the recording the moment has no thread.
type Reading struct {
	Instant
	// Thread changed it. Missing: it was so at the start of the span.
	Thread uint32         `json:"thread,omitempty"`
	Value  evidence.Value `json:"value"`
	// Site is the line of the program that is responsible, By whose code it is, and Call the system call.
	Site evidence.Site `json:"site"`
	By   Author        `json:"by,omitempty"`
	Call string        `json:"call,omitempty"`
}

// Place is code of a function or a line.
type Place struct {
	PC   evidence.Addr `json:"pc"`
	Site evidence.Site `json:"site"`
	// Hits counts the arrivals of threads; Inlined: the function was inlined there.
	Hits    uint64 `json:"hits"`
	Inlined bool   `json:"inlined,omitempty"`
	// Proof is inferred for an instruction of a line of which no statement begins in its function: it may be executed where the
	// line is not.
	Proof evidence.Proof `json:"proof"`
	// Unreachable: threads could not be stopped there, so it was not observed.
	Unreachable bool `json:"unreachable,omitempty"`
	// Missed counts the returns that could not be observed, Left the calls that are known to have ended without one.
	Missed uint64 `json:"missed,omitempty"`
	Left   uint64 `json:"left,omitempty"`
}

// Call is a call of a function.
type Call struct {
	Instant
	// Thread called it.
	Thread uint32 `json:"thread"`
	// Place is an index into the places.
	Place     int                 `json:"place"`
	Arguments []evidence.Variable `json:"arguments"`
	// Returned is when it returned; missing: its return was not seen.
	Returned *Instant `json:"returned,omitempty"`
	// Result is what it returned; missing for void, and without a return.
	Result *evidence.Value `json:"result,omitempty"`
}

// Arrival is one time that a line was executed.
type Arrival struct {
	Instant
	// Thread executed it.
	Thread uint32 `json:"thread"`
	// Place is an index into the places.
	Place int `json:"place"`
}

// DeedKind is what a thread did.
type DeedKind string

// The kinds of deeds.
const (
	DeedFunction DeedKind = "function" // a function of the program was called
	DeedSyscall  DeedKind = "syscall"  // a system call returned
	DeedLock     DeedKind = "lock"     // a lock, a condition, a semaphore or a barrier
	DeedThread   DeedKind = "thread"   // a thread was made, joined, or ended
	DeedSignal   DeedKind = "signal"   // a handler took a signal, or returned
)

// Deed is an action of a thread.
type Deed struct {
	Instant
	// Thread is the one that was asked about; Kind is function, syscall, lock, thread or signal.
	Thread uint32   `json:"thread"`
	Kind   DeedKind `json:"kind"`
	// Name is the function, the call with its arguments, or the action on the lock or the thread.
	Name string `json:"name"`
	// Object is the lock by its variable, or its address.
	Object string `json:"object,omitempty"`
	// Result is what it returned; an error of a system call is negative.
	Result *int64 `json:"result,omitempty"`
	// Waited: the thread had to wait.
	Waited bool `json:"waited,omitempty"`
	// Again counts the mutexes that the thread took before, each again as its last owner. These are no events.
	Again uint64        `json:"again,omitempty"`
	Site  evidence.Site `json:"site"`
}

// Hold is a time for which a thread held a lock.
type Hold struct {
	Instant // when the thread took it
	// Thread is the holder.
	Thread uint32 `json:"thread"`
	// Shared: for reading.
	Shared bool          `json:"shared,omitempty"`
	Site   evidence.Site `json:"site"`
	// Released is when it was given back, by code at By; missing: it was held at the end.
	Released *Instant       `json:"released,omitempty"`
	By       *evidence.Site `json:"by,omitempty"`
	// Releaser is the thread that gave it back, if it is another.
	Releaser uint32 `json:"releaser,omitempty"`
}

// Wait is a thread that waited for the lock at the end.
type Wait struct {
	// Thread is the one that waited; Event is its last one before.
	Thread uint32        `json:"thread"`
	Event  uint64        `json:"event"`
	Site   evidence.Site `json:"site"`
}
