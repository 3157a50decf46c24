package failure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// Blocked says that every thread of a process waits for something that only another thread of it
// could do, without a cycle of owners: for example a condition that no thread can signal.
type Blocked struct {
	// Text says what each thread waits for.
	Text string
	// Thread waits for an object without an owner, at Site. The other threads wait for it, or in
	// the same way.
	Thread evidence.ThreadRef
	Site   *evidence.Site
	Proof  evidence.Proof
}

// byThreads are the waits that only another thread of the process can end. A wait for a semaphore
// is none: signal handlers may post one.
var byThreads = map[evidence.WaitKind]bool{evidence.WaitMutex: true, evidence.WaitRWLock: true, evidence.WaitThreadExit: true, evidence.WaitCondition: true, evidence.WaitBarrier: true,
	evidence.WaitOnce: true, evidence.WaitStatic: true, evidence.WaitRustMutex: true, evidence.WaitRustRWLock: true,
	evidence.WaitRustCondition: true}

// byHandlers are the waits that a signal handler may end as well, by functions that are safe to
// call there (signal-safety(7)), or by an atomic variable. Their memory belongs to the process alone:
// a std::future has pointers to its state, and std::atomic waits for a private futex (bits/atomic_futex.h,
// bits/atomic_wait.h of libstdc++).
var byHandlers = map[evidence.WaitKind]bool{evidence.WaitSemaphore: true, evidence.WaitPrivateFutex: true, evidence.WaitFuture: true}

// Blocked says how all threads wait. It is nil if a thread does not wait, waits for a limited time,
// or waits for something that may come from outside the process. Idle threads do not count. stuck: it
// is known that no thread can continue.
func (w *Waits) Blocked(stuck bool) *Blocked {
	out := &Blocked{Proof: evidence.Inferred}
	if stuck {
		out.Proof = evidence.FromCore
	}
	var root *wait
	for i, wt := range w.list {
		switch {
		case !stuck && w.idle(i) != Acts:
		case wt == nil || wt.timed || wt.came:
			return nil
		case !stuck && (!w.endsByThreads(wt) || w.mayGoOn(wt)):
			return nil
		case root == nil || w.waitsForThread(root) && !w.waitsForThread(wt):
			root = wt
		}
	}
	if root == nil {
		return nil
	}
	out.Thread, out.Site, out.Text = root.thread.Ref, root.site, evidence.Say(w.blockedText()+"; no thread is left to end that"+w.idleText(stuck))
	return out
}

// idle is how a thread, by its index, does nothing for the others.
func (w *Waits) idle(i int) Idle {
	if i < len(w.waiter.opts.Idle) {
		return w.waiter.opts.Idle[i]
	}
	return Acts
}

// waitsForThread reports whether a thread of the process is known to have what another one waits for.
func (w *Waits) waitsForThread(wt *wait) bool {
	return slices.ContainsFunc(wt.owners(), func(tid uint64) bool { return threadNumbered(w.waiter.threads, tid) != nil })
}

// endsByThreads reports whether only another thread can end a wait. Only the recording library
// knows that no other process has a semaphore.
func (w *Waits) endsByThreads(wt *wait) bool {
	return byThreads[wt.what] || wt.called && w.waiter.opts.Unhandled && byHandlers[wt.what]
}

// mayGoOn reports whether the object that a thread waits for is free, or has no known holder.
func (w *Waits) mayGoOn(wt *wait) bool {
	switch wt.what {
	case evidence.WaitRWLock, evidence.WaitMutex:
		_, ended := w.waiter.ended(wt.owner)
		return !ended && threadNumbered(w.waiter.threads, wt.owner) == nil && (wt.what == evidence.WaitMutex || !w.waiter.readersHold(wt.object))
	case evidence.WaitThreadExit:
		return threadNumbered(w.waiter.threads, wt.owner) == nil
	case evidence.WaitBarrier:
		return w.waiter.allArrived(wt.object)
	case evidence.WaitSemaphore:
		value, err := image.Uint32(w.waiter, wt.object)
		return err != nil || value != 0
	}
	return false
}

// readersHold reports whether readers hold a lock. Whichever threads these are, one of the process has
// to act before it is free.
func (w *waiter) readersHold(lock evidence.Addr) bool {
	word, err := image.Uint32(w, lock)
	return err == nil && word>>readersShift != 0
}

// allArrived reads a pthread_barrier_t of glibc (nptl/pthread_barrier_wait.c) or of the recording
// library (agent/src/engine/sync.h): how many threads have arrived, and how many it waits for.
func (w *waiter) allArrived(barrier evidence.Addr) bool {
	const count = 8
	in, err := image.Uint32(w, barrier)
	all, err2 := image.Uint32(w, barrier+count)
	return err != nil || err2 != nil || in >= all
}

// blockedText describes the waits of the threads that are not idle, equal ones together.
func (w *Waits) blockedText() string {
	const most = 6 // different waits
	var texts []WaitText
	threads := map[WaitText][]string{}
	var list []*wait
	for i, wt := range w.list {
		if wt != nil && w.idle(i) == Acts {
			list = append(list, wt)
		}
	}
	slices.SortFunc(list, func(a, b *wait) int { return cmp.Compare(a.thread.Ref.Number, b.thread.Ref.Number) })
	for _, wt := range list {
		text := w.waiter.text(wt, true)
		if len(threads[text]) == 0 {
			texts = append(texts, text)
		}
		threads[text] = append(threads[text], fmt.Sprint(wt.thread.Ref.Number))
	}
	var parts []string
	for _, text := range texts[:min(len(texts), most)] {
		list := threads[text]
		subject := "thread " + list[0]
		if n := len(list) - 1; n > 0 {
			subject = fmt.Sprintf("threads %s and %s each", strings.Join(list[:n], ", "), list[n])
		}
		parts = append(parts, subject+" "+text.For(len(list)))
	}
	if n := len(texts) - len(parts); n > 0 {
		parts = append(parts, fmt.Sprintf("%d more wait", n))
	}
	return strings.Join(parts, ", ")
}

// idleText says why threads that do not wait for another one do not count.
func (w *Waits) idleText(stuck bool) string {
	var parts []string
	for i := range w.list {
		number := w.waiter.threads[i].Ref.Number
		switch {
		case stuck:
		case w.idle(i) == Polls:
			parts = append(parts, fmt.Sprintf("thread %d only polls", number))
		case w.idle(i) == AwaitsSignal:
			parts = append(parts, fmt.Sprintf("thread %d waits for a signal", number))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// blocked turns the failure of a process into a deadlock if the process did not fail by itself and
// none of its threads can continue.
func blocked(f *evidence.Failure, b *Blocked) {
	if b == nil || f.Kind != evidence.NoFailure && f.Kind != evidence.KilledBySignal {
		return
	}
	ref := b.Thread
	f.Kind, f.Proof, f.Message, f.Site, f.Thread, f.Instruction = evidence.Deadlock, b.Proof, b.Text, b.Site, &ref, nil
}
