package driver

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/canary/heapjudge"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image/value"
	"diagnose/replay/record"
)

// heapFailure opens the agent's heap and explains the failure by it: the agent ended the process,
// or the pointer that failed belongs to an object.
func (a *analysis) heapFailure() error {
	h, err := heapjudge.Open(a.process)
	if h == nil || err != nil {
		return err
	}
	f := &a.result.Failure
	a.heap = heapjudge.NewExplanation(h, f, a.limit)
	a.noteAllocator()
	err = cmp.Or(h.ReadErrors(), a.freedLock())
	if a.thread == nil || a.bystander() || f.Signal == nil {
		return err
	}
	told := false
	if a.heap.Words == nil && f.Signal.Number == int(unix.SIGABRT) {
		site := f.Site
		var errEnd error
		told, errEnd = a.heap.ExplainEnd(a.thread.Ref.TID)
		err = cmp.Or(err, errEnd)
		if f.Site != site && f.Site != nil {
			f.Source = a.sources().around(f.Site, sourceContext)
		}
	}
	if !told && f.Fault != nil {
		var errFault error
		told, errFault = a.heap.ExplainFault()
		err = cmp.Or(err, errFault)
	}
	if told {
		a.resay()
	}
	return err
}

// freedLock judges a process that did not fail by itself, and threads of which wait for a lock or the like in a freed
// object. Such a wait for a lock is the failure, and no deadlock, as what the freed memory says of a holder means nothing; but not where
// other threads wait for each other, and a thread that waits for work may do so in memory that is gone without harm.
func (a *analysis) freedLock() error {
	f := &a.result.Failure
	if f.Kind != evidence.Deadlock && f.Kind != evidence.NoFailure && f.Kind != evidence.KilledBySignal || a.bystander() {
		return nil
	}
	for i := range a.waits {
		e := &a.waits[i]
		decides := e.What != evidence.WaitCondition && e.What != evidence.WaitSemaphore && !a.othersWait(e)
		found, err := a.heap.ExplainWait(e, decides)
		if found == nil && err != nil {
			return err
		} else if found == nil {
			continue
		}
		a.result.Findings = slices.DeleteFunc(a.result.Findings, func(other evidence.Finding) bool { return other.Kind.Locks() && other.Addr == e.Object })
		a.result.Findings = append(said([]evidence.Finding{*found}), a.result.Findings...)
		if !decides {
			continue
		}
		if f.Site != nil && f.Source == nil {
			f.Source = a.sources().around(f.Site, sourceContext)
		}
		a.resay()
		return err
	}
	return nil
}

// othersWait reports whether a deadlock was found that a wait has no part in.
func (a *analysis) othersWait(e *evidence.WaitEdge) bool {
	return a.result.Failure.Kind == evidence.Deadlock && slices.ContainsFunc(a.result.Findings, func(f evidence.Finding) bool {
		return f.Kind.Locks() && len(f.Wait) > 0 && !slices.ContainsFunc(f.Wait, func(w evidence.WaitEdge) bool { return w.Waiter == e.Waiter || w.Object == e.Object })
	})
}

// resay writes the failure's sentence again with the facts known by now.
func (a *analysis) resay() {
	a.names.Threads, a.names.Heap = len(a.process.Threads), nil
	if a.heap != nil && a.heap.Words != nil {
		a.names.Heap = (*failure.HeapWords)(a.heap.Words)
	}
	failure.Describe(&a.result.Failure, a.names)
}

// heapFindings adds the findings about the heap, before all others.
func (a *analysis) heapFindings() error {
	if a.heap == nil {
		a.mallocFindings()
		return nil
	}
	var t *heapjudge.FailingThread
	if a.thread != nil && !a.bystander() {
		t = &heapjudge.FailingThread{Process: a.process, Thread: a.thread, ValueFrame: func(int) *value.Frame { return nil }}
		if len(a.stacks) > 0 {
			g := a.stacks[0]
			t.Frames = failure.Frames(failure.Input{Process: a.process, Thread: a.thread, Stack: g.stack})
			t.Stack, t.ValueFrame = &g.stack, func(i int) *value.Frame { return a.valueFrame(g, i) }
		}
	}
	list, err := a.heap.Findings(t)
	a.result.Findings = append(said(list), a.result.Findings...)
	return err
}

// killedForMemory adds the contents of the heap, for a process that the kernel may have killed for
// lack of memory. It reads a replay at the end of its recording.
func (a *analysis) killedForMemory(o *record.Outcome) error {
	why := o.MemoryWords()
	if why == "" {
		return nil
	}
	if err := a.heapFailure(); err != nil || a.heap == nil {
		return err
	}
	use, limits, err := a.heap.Heap().MemoryUse()
	a.limit(limits...)
	a.result.Findings = append(a.result.Findings, said([]evidence.Finding{{Kind: evidence.FindingOutOfMemory, Proof: evidence.Inferred, Facts: use,
		Summary: "out of memory: " + why + ", and it died of SIGKILL"}})...)
	return err
}

// heapObjectAt describes the heap object at an address.
func (a *analysis) heapObjectAt(addr evidence.Addr) *evidence.HeapObject {
	if a.heap == nil {
		return nil
	}
	o, _ := a.heap.Heap().ObjectNear(addr) // an unknown part is left out
	return o
}
