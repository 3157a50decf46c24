package verdict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// faultSignals are the signals that a failing instruction raises.
var faultSignals = []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL}

// faultHandlers are the program's handlers of faults. A program without such handlers has no
// entries.
type faultHandlers struct {
	in   *Input
	rec  *record.Recording
	once sync.Once
	// entries are the first instructions of the handlers.
	entries []evidence.Addr
	// usual are the instructions whose faults were handled in the recorded run, before the
	// failure, and in passing runs. recorded is how often the fault of the failure's own
	// instruction was handled.
	usual    map[evidence.Addr]bool
	recorded int
	// final is the instruction of the last fault of the failing thread that was handled, in the
	// recorded run.
	final evidence.Addr
	// sent is the number of a signal that counts as a fault although a call sent it: the one
	// whose handler ended the recorded run; 0: there is none.
	sent int
	err  error
}

// prepared are the handlers as the process and the recordings have them.
func (h *faultHandlers) prepared() *faultHandlers {
	h.once.Do(func() {
		entries, usual := map[evidence.Addr]bool{}, map[evidence.Addr]bool{}
		for _, p := range []*image.Process{h.in.Process, h.in.Ending} {
			if p != nil {
				handlersOf(p, entries)
			}
		}
		if at := h.in.Handled; at != nil && at.Handler != 0 {
			entries[at.Handler] = true
			if at.Place != eventlog.PlaceFault {
				h.sent = at.Number
			}
		}
		for _, rec := range append([]*record.Recording{h.rec}, h.in.Passing...) {
			if err := h.inLog(rec, h.in.Handled, rec == h.rec, entries, usual); err != nil && h.err == nil {
				h.err = err
			}
		}
		h.entries, h.usual = slices.Sorted(maps.Keys(entries)), usual
	})
	return h
}

// handlersOf adds the handlers of faults that a process has set, as the recording library
// keeps them (dg_actions, agent/src/engine/signal_action.c).
func handlersOf(p *image.Process, entries map[evidence.Addr]bool) {
	const signals, size, ignore = 64, 32, 1
	actions, found := p.SymbolNamed("dg_actions")
	if !found || actions.Size != (signals+1)*size {
		return
	}
	for _, n := range faultSignals {
		if handler, err := image.Uint64(p, actions.Addr+evidence.Addr(n)*size); err == nil && handler > ignore {
			entries[evidence.Addr(handler)] = true
		}
	}
}

// inLog adds the handled faults of a recording.
func (h *faultHandlers) inLog(rec *record.Recording, failed *eventlog.HandledSignal, own bool, entries, usual map[evidence.Addr]bool) error {
	for _, thread := range rec.Log.Threads() {
		list, err := rec.Log.Faults(thread)
		if err != nil {
			return fmt.Errorf("recording %s: %w", rec.Dir, err)
		}
		for _, f := range list {
			entries[f.Handler] = true
			if own && thread == rec.Manifest.Outcome.Thread {
				h.final = f.PC
			}
			if own && failed != nil && f.PC == failed.PC {
				h.recorded++
			} else {
				usual[f.PC] = true
			}
		}
	}
	return nil
}

// handledFaults are the signals that one replay's handlers got.
type handledFaults struct {
	// counts is by the interrupted instruction; last is the last one of each thread, by its id
	// in the kernel, and place the program's function that it interrupted.
	counts map[evidence.Addr]int
	last   map[int]evidence.Addr
	place  map[int]string
	// cut: not all were seen.
	cut bool
}

// mostHandled bounds how many are looked at: each costs a stop.
const mostHandled = 5000

// observe makes the breaks that see each handler of faults begin.
func (h *faultHandlers) observe() (*handledFaults, []replay.Break) {
	f := &handledFaults{counts: map[evidence.Addr]int{}, last: map[int]evidence.Addr{}, place: map[int]string{}}
	total := 0
	var list []replay.Break
	for _, entry := range h.entries {
		list = append(list, replay.Break{PC: entry, Do: func(s *replay.Stopped) error {
			if total++; total > mostHandled {
				f.cut = true
				return replay.ErrBreakOver
			}
			pc, signal, err := s.Interrupted()
			var no *replay.NoHandlerError
			switch {
			case errors.As(err, &no): // a call of the program's
				return nil
			case err != nil:
				return err
			case signal.Number == h.sent && signal.Code <= 0:
				f.place[s.TID()], err = interruptedPlace(s)
				return err
			case signal.Code <= 0 || !slices.Contains(faultSignals, unix.Signal(signal.Number)):
				return nil
			}
			f.counts[pc]++
			f.last[s.TID()] = pc
			return nil
		}})
	}
	return f, list
}

// interruptedPlace is the innermost function of the program's own that a handler, which is
// about to begin, interrupted.
func interruptedPlace(s *replay.Stopped) (string, error) {
	p, err := s.Process()
	if err != nil {
		return "", err
	}
	thread := p.FailingThread()
	if thread == nil {
		return "", nil
	}
	u := unwind.New(p)
	frames := u.Walk(thread, 64).Frames
	if at := slices.IndexFunc(frames, func(f unwind.Frame) bool { return f.Kind == evidence.SignalFrame }); at >= 0 {
		frames = frames[at+1:]
		u.Symbolize(frames)
		return ownFunction(frames), nil
	}
	return "", nil
}

// recurred says why a replay that ended as passing runs do is not known to have gone well:
// a handler got a fault that no run that passes is known to have. Empty: none did.
func (h *faultHandlers) recurred(f *handledFaults) string {
	h.prepared()
	switch {
	case h.err != nil:
		return "which faults are handled in runs that pass is not known: " + h.err.Error()
	case f.cut:
		return "not all faults that its handlers got are known"
	}
	for _, pc := range slices.Sorted(maps.Keys(f.counts)) {
		if h.usual[pc] {
			continue
		}
		if h.in.Handled != nil && pc == h.in.Handled.PC {
			if f.counts[pc] >= h.recorded {
				return "the fault came all the same, and was handled"
			}
			continue
		}
		return fmt.Sprintf("a fault at %v was handled then, which no run that passes is known to have", placeText(h.in.Process, pc))
	}
	return ""
}

// placeText is an instruction's place in the program, or its address.
func placeText(p *image.Process, pc evidence.Addr) string {
	if calls := p.Symbolize(pc, image.AtInstruction); len(calls) > 0 && calls[0].Site.Line > 0 {
		return siteText(&calls[0].Site)
	}
	return pc.String()
}

// sameHandled reports whether a run that ended in a handler of a fault, or after one, did so
// for the recorded signal. The end alone does not say: a handler ends the process in the same
// way for each fault. What counts is the last signal that a handler of the thread got: a fault
// of the same instruction, or a signal that the same function raised by a call, as abort
// does. undecided says why it cannot be told.
func (h *faultHandlers) sameHandled(tid int, f *handledFaults) (same bool, undecided string) {
	if h.in.Handled == nil {
		return true, ""
	}
	const unknown = "it is not known for which signal its handler ended it"
	at, thread := h.prepared().in.Handled, h.in.Process.FailingThread()
	switch {
	case h.err != nil:
		return false, unknown + ": " + h.err.Error()
	case f.cut || thread == nil:
		return false, unknown
	case at.Place == eventlog.PlaceFault:
		return f.last[tid] == h.final && f.counts[at.PC] > 0, ""
	}
	place, handled := f.place[tid]
	return handled && place == placeOf(h.in.Process, thread), ""
}

// WithoutFault makes experiments on a run that ended itself with a status after a handler of
// a fault was left by a jump: the recorded run again, and a run in which the handler returns at
// once, to the instruction after the one that faulted, that time and each time after it. A fault
// that has nothing to do with the end leaves the status and the place as they were. In.Process
// is the process at its end.
func WithoutFault(ctx context.Context, in Input, at *eventlog.HandledSignal) []evidence.Experiment {
	w := newWork(ctx, in)
	defer w.progress.bound(w.Time, w.Spent)()
	w.faults.once.Do(func() {})  // those of faults are what is changed
	w.reached.once.Do(func() {}) // it came to the fault, which is as far as matters
	list := []evidence.Experiment{w.experiments.replayed("the recorded run again", w.rec, replay.FreeRequest{}, true)}
	if !list[0].Agrees() {
		return list
	}
	skipped := 0
	e := w.experiments.repeat("the fault skipped", false, func() trial {
		skipped = 0
		t := w.experiments.once(w.rec, replay.FreeRequest{Breaks: []replay.Break{skipFaults(at, &skipped)}}, false)
		if t.undecided == "" && skipped == 0 {
			t.undecided = "the replay did not come to the fault"
		}
		return t
	})
	return append(list, e)
}

// skipFaults lets the handler return at once, from the time that it got the signal.
func skipFaults(at *eventlog.HandledSignal, skipped *int) replay.Break {
	return replay.Break{PC: at.Handler, Changes: true, Do: func(s *replay.Stopped) error {
		ordinal, err := s.Ordinal()
		if err != nil || s.Moment.Thread != at.Thread || ordinal < at.Ordinal {
			return err
		}
		if *skipped++; *skipped > mostHandled {
			return fmt.Errorf("more than %d faults follow", mostHandled)
		}
		return s.SkipFault()
	}}
}
