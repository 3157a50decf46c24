package evidence

import "fmt"

// FindingKind names a kind of damage or misuse that a stage established.
type FindingKind string

// The kinds of finding.
const (
	FindingStackGuard FindingKind = "stack-guard-overwritten"
	FindingDeadlock   FindingKind = "deadlock"
	FindingSelfLock   FindingKind = "self-deadlock"
	// FindingAbandonedLock is a lock whose holder is no thread of the process any more, and that threads wait for.
	FindingAbandonedLock FindingKind = "abandoned-lock"
	// FindingFreedMemory is a bad pointer that was read from a free block.
	FindingFreedMemory FindingKind = "freed-memory"

	// Damage that the agent's guards show.
	FindingHeapOverflow  FindingKind = "heap-overflow"
	FindingHeapUnderflow FindingKind = "heap-underflow"
	// FindingUseAfterFree is a write into a freed object, or the use of a
	// pointer that was read from one.
	FindingUseAfterFree FindingKind = "use-after-free"
	// Misuse that the agent caught at the call.
	FindingDoubleFree     FindingKind = "double-free"
	FindingInvalidFree    FindingKind = "invalid-free"
	FindingMismatchedFree FindingKind = "mismatched-free"
	// FindingHeapObject says in, before or after which object of the heap the
	// failing access or one of its pointers is.
	FindingHeapObject FindingKind = "heap-object"
	// FindingOutOfMemory says that an allocation failed shortly before, and what the
	// memory is used for.
	FindingOutOfMemory FindingKind = "out-of-memory"
	// FindingHeapHeader is a header of the C library's heap that was overwritten, where it is not
	// known from which side.
	FindingHeapHeader FindingKind = "heap-header-overwritten"
	// FindingStackSmashing is an array on the stack whose contents continue over a word of its frame.
	FindingStackSmashing FindingKind = "stack-smashing"
	// FindingContainer is the use of an element that a container of the C++ library does not have.
	FindingContainer FindingKind = "container-misuse"
	// FindingHandledFault is a fault whose handler was left by a jump, of a process that
	// ended itself with a status.
	FindingHandledFault FindingKind = "handled-fault"
)

// Locks reports whether the finding is that threads wait for locks that are not given back any more.
func (k FindingKind) Locks() bool {
	return k == FindingDeadlock || k == FindingSelfLock || k == FindingAbandonedLock
}

// Fact is one line of a finding's detail.
type Fact struct {
	// Name says what Text is of: "function", "distance", "lock order".
	Name string `json:"name"`
	Text string `json:"text"`
}

// Finding is damage or misuse that a stage established, with what shows it.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Summary is one sentence without a final stop; Facts its details in
	// reading order.
	Summary string `json:"summary"`
	Facts   []Fact `json:"facts,omitempty"`
	// Addr and Size are the memory concerned; Size 0 when there is none.
	Addr Addr `json:"addr,omitempty"`
	Size int  `json:"size,omitempty"`
	// Threads are those involved; for a deadlock in the order of the cycle.
	Threads []ThreadRef `json:"threads,omitempty"`
	Site    *Site       `json:"site,omitempty"`
	// Wait is the cycle of a deadlock.
	Wait []WaitEdge `json:"wait,omitempty"`
	// Object is the heap object concerned, Damage the bytes of its guards or
	// its fill that were overwritten, Beyond the object that the damage
	// extends into.
	Object *HeapObject `json:"object,omitempty"`
	Damage *Damage     `json:"damage,omitempty"`
	Beyond *HeapObject `json:"beyond,omitempty"`
	// Call is the call that found it: the second free of a double free.
	Call *HeapCall `json:"call,omitempty"`
	// Heap is what the C library's heap shows of it; nil for a finding that is not about that heap.
	Heap *HeapFacts `json:"heap,omitempty"`
	// Overrun is the array that was written past its end, of a stack that was smashed; nil: it is not known.
	Overrun *StackOverrun `json:"overrun,omitempty"`
	// Container is the use of a container that FindingContainer is about; nil for others.
	Container *ContainerUse `json:"container,omitempty"`
	Proof     Proof         `json:"proof"`
}

// WaitEdge says that a thread waits for something that another one holds.
type WaitEdge struct {
	Waiter ThreadRef `json:"waiter"`
	// What is the kind of thing that it waits for.
	What WaitKind `json:"what"`
	// Object is the lock's address and Name its variable, if known.
	Object Addr   `json:"object"`
	Name   string `json:"name,omitempty"`
	// Path is how the waiter's frames name the object, where it has no Name: "to->lock". Of another thread's frames it may name another
	// object.
	Path string `json:"path,omitempty"`
	// Owner holds it; nil when the object does not record one, or one of which no more is known.
	Owner *ThreadRef `json:"owner,omitempty"`
	// OwnerPath is how the owner's frames name it.
	OwnerPath string `json:"owner_path,omitempty"`
	// Site is where the waiter asked for it.
	Site *Site `json:"site,omitempty"`
}

// WaitKind is a kind of thing that threads wait for.
type WaitKind string

// The kinds of waits.
const (
	WaitMutex      WaitKind = "mutex"
	WaitRWLock     WaitKind = "rwlock"
	WaitThreadExit WaitKind = "thread exit"
	WaitCondition  WaitKind = "condition variable"
	WaitSemaphore  WaitKind = "semaphore"
	WaitBarrier    WaitKind = "barrier"
	WaitOnce       WaitKind = "once initialisation"
	// WaitStatic is a wait for the first call of a function to initialise a static variable.
	WaitStatic        WaitKind = "initialisation of a static variable"
	WaitRustMutex     WaitKind = "Rust mutex"
	WaitRustRWLock    WaitKind = "Rust rwlock"
	WaitRustCondition WaitKind = "Rust condition variable"
	WaitUnparking     WaitKind = "unparking"
	WaitFuture        WaitKind = "future or atomic"
	// WaitPrivateFutex is a futex call with FUTEX_PRIVATE_FLAG, of the program's own.
	WaitPrivateFutex WaitKind = "private futex"
	// WaitFutex is a futex call of which no more is known.
	WaitFutex WaitKind = "futex"
)

// Check reports what makes the finding unusable: a missing summary, an
// unknown proof level, a deadlock that names fewer waits than threads.
func (f *Finding) Check() error {
	if f.Kind == "" || f.Summary == "" {
		return fmt.Errorf("finding %q at %v has no kind or no summary", f.Kind, f.Addr)
	}
	if !f.Proof.Valid() {
		return fmt.Errorf("finding %q: unknown proof level %q", f.Kind, f.Proof)
	}
	if f.Size < 0 {
		return fmt.Errorf("finding %q: negative size %d", f.Kind, f.Size)
	}
	if f.Kind == FindingDeadlock && len(f.Wait) < 2 {
		return fmt.Errorf("deadlock of %d waits is no cycle", len(f.Wait))
	}
	if f.Heap != nil {
		if err := f.Heap.check(); err != nil {
			return err
		}
	}
	if f.Overrun != nil {
		if err := f.Overrun.check(); err != nil {
			return err
		}
	}
	if f.Kind == FindingStackSmashing && f.Overrun == nil {
		return fmt.Errorf("finding %q names no array", f.Kind)
	}
	if (f.Kind == FindingContainer) != (f.Container != nil) {
		return fmt.Errorf("finding %q has the facts of another kind", f.Kind)
	}
	if f.Container != nil {
		if err := f.Container.check(); err != nil {
			return err
		}
	}
	if f.Damage != nil {
		return f.Damage.check()
	}
	return nil
}
