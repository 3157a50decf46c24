package probe

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/expression"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// mostEvents bounds the events at which the process is stopped.
const mostEvents = 100_000

// findEvents finds the system calls and signals that are asked for in the log.
func (r *run) findEvents() error {
	q := r.q
	numbers := map[uint64]int{}
	for _, name := range q.Syscalls {
		number, known := eventlog.SyscallNumber(name)
		if !known {
			return &Error{Asked: name, Problem: "is no system call"}
		}
		numbers[number] = r.addEvents(KindSyscall, name)
	}
	signals := -1
	if q.Signals {
		signals = r.addEvents(KindSignal, "signals")
	}
	if len(numbers) == 0 && signals < 0 {
		return nil
	}
	for e, err := range r.rec.Log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return err
		}
		place, wanted := numbers[e.Object]
		switch {
		case e.Kind == eventlog.KindSyscall && wanted:
		case e.Kind == eventlog.KindSignal && signals >= 0:
			place = signals
		default:
			continue
		}
		if len(r.hooks) == mostEvents {
			return &Error{Asked: r.log.Places[place].Asked, Problem: fmt.Sprintf("the recording has more than %d of these", mostEvents)}
		}
		at := evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal}
		if e.Kind == eventlog.KindSignal {
			// After the event the thread continues in the handler.
			s, err := r.rec.Log.HandledBy(e)
			if err != nil {
				return err
			}
			at.PC, at.Count = s.Handler, 1
		}
		text := eventText(e)
		r.hooks = append(r.hooks, replay.Hook{At: at, Do: func(s *replay.Stopped) error { return r.happened(s, place, text) }})
	}
	return nil
}

func (r *run) addEvents(kind Kind, asked string) int {
	r.log.Places = append(r.log.Places, Place{Kind: kind, Asked: asked})
	return len(r.log.Places) - 1
}

func eventText(e *eventlog.Event) string {
	if e.Kind == eventlog.KindSignal {
		return unix.SignalName(unix.Signal(e.Object))
	}
	return e.CallText()
}

// happened handles a thread right after an event. Expressions are evaluated in the innermost
// function of its stack that is the program's own.
func (r *run) happened(s *replay.Stopped, place int, text string) error {
	x, err := r.open(s)
	if err != nil {
		return err
	}
	a, frame := r.ownFrame(x, place)
	if r.log.Places[place].Kind == KindSyscall {
		s.Moment.PC, s.Moment.Count = 0, 0 // inside of libc it says nothing
	}
	r.call = 0
	return r.reached(x, place, text, a, frame, nil)
}

// inProgram is ownFrame with the scope of the frame; nil: there is none.
func (r *run) inProgram(x *stop, place int) (*asked, expression.Scope) {
	a, frame := r.ownFrame(x, place)
	if frame == nil || a.place == nil {
		return a, nil
	}
	return a, a.place.In(frame)
}

// ownFrame returns the frame of the innermost function of the thread's stack that is the program's own, with the expressions
// there; nil: there is none.
func (r *run) ownFrame(x *stop, place int) (*asked, *value.Frame) {
	var frame *value.Frame
	r.unwinder.Visit(x.memory, &x.regs, mostFrames, func(f *unwind.Frame) bool {
		m := r.process.ModuleAt(f.PC())
		if m == nil || image.RuntimeModule(m.Path) {
			return true
		}
		info, err := m.Debug()
		if err != nil || info == nil {
			return true
		}
		frame = &value.Frame{Process: r.process, Thread: &r.thread, Module: m, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup, Memory: x.memory}
		return false
	})
	a := &asked{err: errNoScope}
	for _, name := range r.q.Print {
		a.print = append(a.print, printed{name: name, err: errNoScope})
	}
	if frame != nil {
		a = r.ask(place, frame.Lookup.Address(frame.Registers.PC()))
	}
	return a, frame
}

// siteText is a site in a stack.
func siteText(s *evidence.Site) string {
	switch {
	case s.Function != "" && s.Line != 0:
		return fmt.Sprintf("%s %s:%d", s.Function, path.Base(s.File), s.Line)
	case s.Function != "":
		return s.Function
	}
	return s.PC.String()
}

// Columns returns the names of the expressions that rows have values of, in the order in which they
// come.
func (l *Log) Columns() []string {
	var names []string
	for i := range l.Rows {
		for _, v := range l.Rows[i].Values {
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	return names
}
