package replay

import (
	"fmt"
	"strings"
	"time"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/spin"
	"diagnose/replay/tracee"
)

// Spun is memory that a thread reads again and again, and does not write.
type Spun struct {
	spin.Word
	// Name says what the memory is; empty if it has no name.
	Name string
}

func (s *Spun) text() string {
	name := s.Name
	if name == "" {
		name = "memory"
	}
	return fmt.Sprintf("%s at %v, which holds %#x", name, s.Addr, s.Value)
}

// StuckError says that a replay makes no progress, and what each thread waits for.
type StuckError struct {
	// Computing: a thread computes, and reached no event for the time After.
	Computing bool
	After     time.Duration
	// Endless: the thread returned to an instruction with the same registers and memory, so it
	// loops for ever.
	Endless bool
	// Events is the number of events done, of Total.
	Events, Total uint64
	// Holder is the thread that may run, Due the thread whose event is next; 0: none.
	Holder, Due uint32
	Threads     []WaitingThread
	// Cause says why a free replay cannot continue; empty if it is not known.
	Cause StuckCause
	// Kernel is the kernel's view of the process when the time was over; empty if the process
	// itself reported that it is stuck.
	Kernel string
}

// StuckCause says why a free replay cannot continue.
type StuckCause string

// The causes.
const (
	StuckBlocked StuckCause = "every thread waits for another"
	StuckCycle   StuckCause = "threads wait for each other's mutexes"
	StuckEvents  StuckCause = "it continues without an end"
)

// WaitingThread describes a thread of a replay that is stuck.
type WaitingThread struct {
	Thread  uint32
	Ordinal uint64 // of its last event
	// Waits is the kind of event that the thread waits for; empty: it runs.
	Waits  string
	Object evidence.Addr
	// ObjectName names the object, At the place where the thread is.
	ObjectName, At string
	Stack          []string
	Ended          bool
	// Spins is the memory that it only reads in a loop, if it computes.
	Spins []Spun
	// Next describes its next event in the recording; empty: none.
	Next string
}

func (e *StuckError) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines are the lines of the error's text.
func (e *StuckError) Lines() []string {
	var b strings.Builder
	what := "all threads sleep"
	if e.Computing {
		what = "a thread computes"
	}
	after := e.After.Round(time.Second)
	if e.Endless {
		what, after = "a thread runs in a loop that it cannot leave", e.After.Round(time.Millisecond)
	}
	if e.Cause != "" {
		fmt.Fprintf(&b, "the replay cannot continue: %s (after %d events, the recording has %d)", e.Cause, e.Events, e.Total)
	} else {
		fmt.Fprintf(&b, "the replay makes no progress: no event for %v while %s (%d of %d events)", after, what, e.Events, e.Total)
	}
	switch {
	case e.Holder != 0 && e.Due != 0 && e.Holder != e.Due:
		fmt.Fprintf(&b, "; thread %d has the right to run, the next event is thread %d's", e.Holder, e.Due)
	case e.Due != 0:
		fmt.Fprintf(&b, "; the next event is thread %d's", e.Due)
	}
	lines := []string{b.String()}
	for i := range e.Threads {
		lines = append(lines, "  "+e.Threads[i].text())
	}
	if e.Kernel != "" {
		lines = append(lines, "  the kernel: "+e.Kernel)
	}
	return lines
}

func (w *WaitingThread) text() string {
	text := fmt.Sprintf("thread %d, event %d: ", w.Thread, w.Ordinal)
	switch {
	case w.Thread == 0:
		return "a thread that the engine does not know is" + inAt(w.At)
	case w.Ended:
		return text + "has ended"
	case len(w.Spins) > 0:
		text += "turns in a loop that reads "
		for i := range w.Spins {
			if i > 0 {
				text += " and "
			}
			text += w.Spins[i].text()
		}
		text += ","
	case w.Waits == "":
		text += "runs"
	default:
		text += "waits for " + w.Waits
		if w.Object != 0 {
			text += " " + w.Object.String()
		}
		if w.ObjectName != "" {
			text += " (" + w.ObjectName + ")"
		}
	}
	text += inAt(w.At)
	if w.Next != "" {
		text += "; its next event in the recording is " + w.Next
	}
	return text
}

// stuck ends the replay because no thread continues.
func (j *judge) stuck(t *tracee.Thread, computing bool) error {
	e := &StuckError{Computing: computing, After: j.sleeping, Total: j.recordings.Stage().Events}
	if computing {
		e.After = j.computing
	}
	j.end = &end{kind: EndStuck, thread: t, failure: e}
	if err := j.process.StopAll(); err != nil {
		return err
	}
	var p *image.Process
	if !j.unnamed {
		var err error
		if p, err = j.process.OpenImage(t); err == nil {
			defer p.Close()
		}
	}
	if j.process.Control != 0 {
		control, err := j.process.ReadControl()
		if err != nil {
			return err
		}
		e.Events, e.Holder = control.Consumed, control.Holder
		e.Due = j.recordings.Stage().Due(control.Run)
	}
	for _, t := range j.process.SortedThreads() {
		w, err := j.waiting(t, p)
		if err != nil {
			return err
		}
		if computing && !j.unnamed && t.Index != 0 && w.Waits == "" && !w.Ended {
			if w.Spins, err = j.spins(t, p); err != nil {
				return err
			}
		}
		e.Threads = append(e.Threads, w)
	}
	return nil
}

// waiting describes a thread. p is nil if there are no names.
func (j *judge) waiting(t *tracee.Thread, p *image.Process) (WaitingThread, error) {
	w := WaitingThread{Thread: t.Index}
	if p != nil {
		w.Stack = stackOf(p, t.Index)
		if len(w.Stack) > 0 {
			w.At = w.Stack[0]
		}
	}
	if t.Index == 0 {
		return w, nil
	}
	r, err := j.process.ReadThread(t.Index)
	if err != nil {
		return w, err
	}
	w.Ordinal, w.Ended = r.Ordinal, r.State == agent.REnded
	if r.WaitsFor != 0 {
		w.Waits, w.Object = eventlog.Kind(r.WaitsFor).String(), evidence.Addr(r.WaitsObject)
		if eventlog.Kind(r.WaitsFor) == eventlog.KindSyscall {
			w.Waits, w.Object = "the result of "+eventlog.SyscallName(r.WaitsObject), 0
		} else if p != nil && w.Object != 0 {
			w.ObjectName = p.Place(w.Object).Text
		}
	}
	next, err := j.recordings.NextEvent(j.process, t)
	if err != nil {
		return w, err
	}
	if next != nil {
		w.Next = eventText(next)
	}
	return w, nil
}

// spins finds the memory that a thread waits for if it computes without an end (spin.Reads).
func (j *judge) spins(t *tracee.Thread, p *image.Process) ([]Spun, error) {
	r, err := j.process.ReadThread(t.Index)
	if err != nil || r.Inside != 0 || t.Final != nil || t.Deferred != nil {
		return nil, err
	}
	if err := j.placer.SetStepping(t, true); err != nil {
		return nil, err
	}
	words, err := spin.Reads(j.process, t)
	if err != nil {
		return nil, err
	}
	list := make([]Spun, len(words))
	for i, w := range words {
		list[i].Word = w
		if p != nil {
			list[i].Name = p.Place(w.Addr).Text
		}
	}
	return list, nil
}
