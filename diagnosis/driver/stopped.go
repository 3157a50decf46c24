package driver

import (
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/value"
)

// stoppedProcess is a process that does not run, with its stacks: a core file, a live process that
// is stopped, or a moment of a replay.
type stoppedProcess struct {
	process *image.Process
	// thread is the one under judgement; nil if none failed and none was asked for.
	thread *image.Thread
	// separate: threads with equal stacks are listed one by one.
	separate bool

	unwinder *unwind.Unwinder
	// walked holds the threads' stacks, by their index in the process.
	walked []unwind.Stack
	// stacks holds the thread groups, that of thread first. waiting says what each thread waits
	// for, by its index in the process; waits is the same as values, for the threads whose wait is
	// known.
	stacks  []*group
	waiting []failure.WaitText
	waits   []evidence.WaitEdge
}

// chooseThread finds the thread with the given number or TID, or, for 0, the failing one.
func (sp *stoppedProcess) chooseThread(asked int) error {
	p := sp.process
	if asked == 0 {
		if p.Failing >= 0 && p.Failing < len(p.Threads) {
			sp.thread = &p.Threads[p.Failing]
		}
		return nil
	}
	for i := range p.Threads {
		if ref := p.Threads[i].Ref; ref.TID == asked || ref.Number == asked {
			sp.thread = &p.Threads[i]
			return nil
		}
	}
	return fmt.Errorf("no thread %d: the process has %d threads", asked, len(p.Threads))
}

// bystander reports whether the user asked for the thread under judgement while another one failed.
func (sp *stoppedProcess) bystander() bool {
	p := sp.process
	return sp.thread != nil && p.Failing >= 0 && sp.thread != &p.Threads[p.Failing]
}

// ownSite is the innermost place of the program's own code on the stack of the thread under
// judgement; nil if there is none.
func (sp *stoppedProcess) ownSite() *evidence.Site {
	if sp.thread == nil || len(sp.stacks) == 0 {
		return nil
	}
	frames := sp.stacks[0].stack.Frames
	for i := range frames {
		if s := ownSiteOf(frames[i].Calls); s != nil {
			return s
		}
		for _, tail := range frames[i].TailCalls {
			if s := ownSiteOf(tail.Calls); s != nil {
				return s
			}
		}
	}
	return nil
}

func ownSiteOf(calls []image.SymbolizedCall) *evidence.Site {
	for i := range calls {
		if s := &calls[i].Site; s.Module != "" && !image.LibraryCode(s) {
			return s
		}
	}
	return nil
}

// siteAt names a place; nil: the address is in no mapping.
func (sp *stoppedProcess) siteAt(pc evidence.Addr, how image.Lookup) *evidence.Site {
	if pc == 0 {
		return nil
	}
	return &sp.process.Symbolize(pc, how)[0].Site
}

// recordedThread is a thread by its number in the recording.
func (sp *stoppedProcess) recordedThread(number uint32) evidence.ThreadRef {
	for i := range sp.process.Threads {
		if ref := sp.process.Threads[i].Ref; ref.Recorded == int(number) {
			return ref
		}
	}
	return evidence.ThreadRef{Number: int(number), Recorded: int(number)}
}

// valueFrame is the context in which a frame's variables are read; nil for
// code outside every object.
func (sp *stoppedProcess) valueFrame(g *group, i int) *value.Frame {
	return value.FrameIn(sp.process, g.threads[0], g.stack.Frames, i)
}

// handlers counts the signal handlers on the stack of the thread under judgement.
func (sp *stoppedProcess) handlers() int {
	n := 0
	for i := range sp.stacks[0].stack.Frames {
		if sp.stacks[0].stack.Frames[i].Kind == evidence.SignalFrame {
			n++
		}
	}
	return n
}
