package failure

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// Waits is what the threads of a process wait for.
type Waits struct {
	waiter waiter
	list   []*wait // by thread; nil: its wait, if any, is not understood
}

// WaitOptions are facts from other sources.
type WaitOptions struct {
	// Words, by thread, are the objects that threads wait for in the recording library when it lets
	// one thread run at a time: the futexes are the library's own then. 0: it is not known.
	Words []evidence.Addr
	// Turn reports whether a word is the recording library's own, on which a thread sleeps
	// until it may run. Such a sleep says nothing of what the program waits for. nil: none is.
	Turn func(word evidence.Addr) bool
	// Calls, by thread, are the calls in which the threads of a replay rest that have no event
	// left. An empty one means that nothing is known.
	Calls []WaitingCall
	// Idle, by thread, are the threads that do nothing for the others. Empty: none is known to be one.
	Idle []Idle
	// Unhandled: the process has no signal handlers, which could post a semaphore or wake a futex.
	Unhandled bool
	// EndOf returns the number, in the recording, of the thread whose end the recording library
	// reports in a word; 0: the word is for something else. nil: no word is for that.
	EndOf func(word evidence.Addr) int
	// Readers returns the kernel's ids of the threads that are known to be among the so many readers
	// of a lock. nil: none is known.
	Readers func(lock evidence.Addr, count uint32) []uint64
	// Ended returns the thread of the process that had a kernel's id, which none has any more, if it is known. nil: none is.
	Ended func(tid uint64) (evidence.ThreadRef, bool)
	// NameOf names an object that is in no global. If it is nil or returns "", the object has no
	// name.
	NameOf func(evidence.Addr) string
	// PathFrom is how the frames of a thread name an object that has no name: "to->lock". If it is nil or returns "", they do not.
	PathFrom func(thread int, object evidence.Addr) string
}

// Idle is how a thread does nothing for the other threads of its process, though it may continue.
type Idle uint8

const (
	// Acts: it is not known to be idle.
	Acts Idle = iota
	// Polls: it runs the same round again and again, with a wait that ends by time, and no other thread has had an event meanwhile.
	Polls
	// AwaitsSignal: only a signal lets it continue.
	AwaitsSignal
)

// WaitingCall is a call that returns when an event happens.
type WaitingCall struct {
	// What is the kind of the object of the wait; empty: there is no such call.
	What   evidence.WaitKind
	Object evidence.Addr
	// Joined is the number, in the recording, of the thread that is joined.
	Joined int
	Timed  bool // it ends by itself
	Came   bool // the event has happened, though the thread has not continued
}

// WaitsOf reads the waits from the stacks of the process's threads (in the order of
// Process.Threads, with symbolized frames).
func WaitsOf(p *image.Process, stacks []unwind.Stack, opts WaitOptions) *Waits {
	w := waiter{target: p, threads: p.Threads, stacks: stacks, opts: opts}
	return &Waits{waiter: w, list: w.waits()}
}

// Deadlocks are the cycles of threads that wait for each other. Waits whose object records
// no owner make no edge, so a cycle through them is not found.
func (w *Waits) Deadlocks() []evidence.Finding { return w.waiter.cycles(w.list) }

// Abandoned are the locks that threads wait for and whose holders are no threads of the process any more, one finding for
// each lock. Where it is not known that the holder has ended, the lock may have come from another process, by fork.
func (w *Waits) Abandoned() []evidence.Finding {
	var list []evidence.Finding
	for _, wt := range w.list {
		if wt == nil || wt.timed || wt.came || !w.waiter.abandoned(wt) {
			continue
		}
		e := w.waiter.edge(wt)
		if i := slices.IndexFunc(list, func(f evidence.Finding) bool { return f.Addr == wt.object }); i >= 0 {
			f := &list[i]
			f.Wait, f.Threads = append(f.Wait, e), append(f.Threads, e.Waiter)
			continue
		}
		f := evidence.Finding{Kind: evidence.FindingAbandonedLock, Proof: evidence.FromCore, Addr: wt.object, Site: wt.site,
			Wait: []evidence.WaitEdge{e}, Threads: []evidence.ThreadRef{e.Waiter}}
		f.Summary = fmt.Sprintf("thread %d %s", e.Waiter.Number, w.waiter.text(wt, true).For(1))
		if e.Owner == nil {
			f.Proof = evidence.Inferred
		}
		list = append(list, f)
	}
	return list
}

// abandoned reports whether the holder of a lock is no thread of the process.
func (w *waiter) abandoned(wt *wait) bool {
	if wt.what != evidence.WaitMutex && wt.what != evidence.WaitRWLock || wt.owner == 0 || wt.shared || threadNumbered(w.threads, wt.owner) != nil {
		return false
	}
	_, known := w.ended(wt.owner)
	return known || w.knowsItsID(wt.thread)
}

// ownID is the offset in glibc's struct pthread of the thread's id, which the thread register leads to (nptl/descr.h).
const ownID = 0x2d0

// knowsItsID reports whether a thread's id is the one that its C library has for it, and puts into locks. It is another one
// if a process of another namespace is looked at (pid_namespaces(7)).
func (w *waiter) knowsItsID(t *image.Thread) bool {
	id, err := image.Uint32(w, evidence.Addr(t.Registers.FSBase)+ownID)
	return err == nil && int(id) == t.Ref.TID
}

// ended returns the thread that had a kernel's id and has ended, if it is known.
func (w *waiter) ended(tid uint64) (evidence.ThreadRef, bool) {
	if w.opts.Ended == nil || tid == 0 || threadNumbered(w.threads, tid) != nil {
		return evidence.ThreadRef{}, false
	}
	return w.opts.Ended(tid)
}

// Edges are the waits of the process's threads that are understood and do not end by themselves.
// Waits with a time limit end by themselves, and so do waits whose event has happened.
func (w *Waits) Edges() []evidence.WaitEdge {
	var list []evidence.WaitEdge
	for _, wt := range w.list {
		if wt != nil && !wt.timed && !wt.came {
			list = append(list, w.waiter.edge(wt))
		}
	}
	return list
}

func (w *waiter) edge(wt *wait) evidence.WaitEdge {
	var to *evidence.ThreadRef
	if owner := threadNumbered(w.threads, wt.owner); owner != nil {
		ref := owner.Ref
		to = &ref
	} else if ref, known := w.ended(wt.owner); known {
		to = &ref
	}
	return w.edgeTo(wt, to)
}

func (w *waiter) edgeTo(wt *wait, owner *evidence.ThreadRef) evidence.WaitEdge {
	return evidence.WaitEdge{Waiter: wt.thread.Ref, What: wt.what, Object: wt.object, Name: wt.name, Path: wt.path, Owner: owner, OwnerPath: w.path(wt, owner), Site: wt.site}
}

// Texts say for each of the process's threads what it waits for. Nothing is known of a thread that
// does not wait, or whose wait is not understood.
func (w *Waits) Texts() []WaitText {
	out := make([]WaitText, len(w.list))
	for i, wt := range w.list {
		if wt != nil {
			out[i] = w.waiter.text(wt, false)
		}
	}
	return out
}

func (w *waiter) waits() []*wait {
	out := make([]*wait, len(w.threads))
	for i := range w.threads {
		out[i] = w.waitOf(i)
	}
	return out
}

// cycles follows each thread's wait to the owners of the object. A thread waits for all readers of a
// lock, so a way through any one of them that comes back is a cycle.
func (w *waiter) cycles(waits []*wait) []evidence.Finding {
	s := cycleSearch{waiter: w, waits: waits, byTID: map[uint64]int{}, state: make([]searchState, len(waits))}
	for i := range w.threads {
		s.byTID[uint64(w.threads[i].Ref.TID)] = i
	}
	for start := range waits {
		s.from(start)
	}
	return s.found
}

// cycleSearch is a search in depth, which enters each thread once.
type cycleSearch struct {
	waiter *waiter
	waits  []*wait
	byTID  map[uint64]int
	state  []searchState
	path   []int
	found  []evidence.Finding
}

type searchState uint8

const (
	unseen searchState = iota
	onPath
	searched
)

func (s *cycleSearch) from(i int) {
	if s.state[i] != unseen || s.waits[i] == nil {
		return
	}
	s.state[i], s.path = onPath, append(s.path, i)
	for _, owner := range s.waits[i].owners() {
		next, known := s.byTID[owner]
		switch {
		case !known:
		case s.state[next] == onPath:
			s.found = append(s.found, s.waiter.finding(s.waits, cut(s.path, next)))
		default:
			s.from(next)
		}
	}
	s.state[i], s.path = searched, s.path[:len(s.path)-1]
}

// cut returns the part of a path from where it closed on itself.
func cut(path []int, closed int) []int {
	for at, i := range path {
		if i == closed {
			return path[at:]
		}
	}
	return path
}

func (w *waiter) finding(waits []*wait, cycle []int) evidence.Finding {
	f := evidence.Finding{Kind: evidence.FindingDeadlock, Proof: evidence.FromCore}
	var steps []string
	for n, i := range cycle {
		wt := waits[i]
		f.Wait = append(f.Wait, w.edgeTo(wt, &waits[cycle[(n+1)%len(cycle)]].thread.Ref))
		f.Threads = append(f.Threads, wt.thread.Ref)
		if wt.timed {
			f.Facts = append(f.Facts, evidence.Fact{Name: wt.thread.Ref.Label(), Text: "waits for a limited time only"})
		}
		steps = append(steps, fmt.Sprintf("thread %d %s", wt.thread.Ref.Number, w.text(wt, true).For(1)))
		if wt.timed || wt.owner == 0 { // readers are known from the log
			f.Proof = evidence.Inferred
		}
	}
	f.Addr, f.Site = f.Wait[0].Object, f.Wait[0].Site
	f.Summary = strings.Join(steps, ", ")
	if len(cycle) == 1 {
		f.Kind = evidence.FindingSelfLock
		wt, how := waits[cycle[0]], ""
		if wt.owner == 0 {
			how = " for reading"
		}
		f.Summary = fmt.Sprintf("thread %d waits for %s %s that it holds itself%s", f.Threads[0].Number, wt.what, objectText(wt, true), how)
	}
	return f
}
