package verdict

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// mostFrames bounds how many callers a value is followed into, a replay each.
const mostFrames = 8

// frameEvents is behind how many of its events a thread may have called a function that
// it is still in.
const frameEvents = 20_000

// inFrames goes back from the failing instruction along what the functions really
// executed whose frames are there, where their code alone leaves several ways. A frame's
// function is gone along from its call.
type inFrames struct {
	frames []unwind.Frame
	// first is the frame to begin in, register what held the value there; RIP: what the
	// last condition was about.
	first    int
	register image.Register
	// ended: the program ended itself there by a status. until is when the frames were
	// there; nil: at the failure.
	ended bool
	until *arrivals
}

// failingFrames is where the failing instruction's bad value is looked for; nil if there
// is none.
func (b *beginnings) failingFrames() *inFrames {
	thread := b.in.Process.FailingThread()
	if thread == nil {
		return nil
	}
	f := &inFrames{frames: unwind.New(b.in.Process).Walk(thread, mostWalkedFrames).Frames, register: image.RIP, ended: b.in.Case.Failure.Kind == evidence.ExitStatus}
	if blame := b.in.Blame; blame != nil && blame.Role != "" && b.in.Case.Failure.Fault != nil {
		for r := image.RAX; r <= image.R15; r++ {
			if blame.Register == r.String() {
				f.register = r
			}
		}
		if f.register == image.RIP {
			return nil
		}
		return f
	}
	m := rustReport(b.in.Case)
	if m == nil && !foundWrong(b.in.Case, b.rec) {
		return nil
	}
	if m != nil {
		f = b.reportingFrames(m)
	}
	if f == nil || !f.beginAtOwn(b.in) {
		return nil
	}
	return f
}

// mostWalkedFrames bounds the stacks that are walked for the functions' frames.
const mostWalkedFrames = 64

// beginAtOwn goes out to the first frame of the program's own code. It reports false
// where there is none, and for a Rust panic that is not about an Option without a value.
func (f *inFrames) beginAtOwn(in *Input) bool {
	empty := false
	for f.first < len(f.frames) {
		site := evidence.Site{}
		if calls := in.Process.Symbolize(f.frames[f.first].PC(), f.frames[f.first].Lookup); len(calls) > 0 {
			site = calls[len(calls)-1].Site
		}
		empty = empty || site.Function == "core::option::unwrap_failed" || site.Function == "core::option::expect_failed"
		reporting := f.until != nil && !empty && image.LibraryCode(&site)
		if !reporting && !image.Machinery(&site) {
			panicked := in.Case.Failure.Kind == evidence.RustPanic || rustReport(in.Case) != nil
			return empty || !panicked
		}
		f.first++
	}
	return false
}

// rustReport is the message in which a program that ended by a status had reported a
// panic of Rust's; nil if there is none.
func rustReport(c *evidence.Case) *evidence.Message {
	e := c.Ending
	if c.Failure.Kind != evidence.ExitStatus || e == nil || e.Panic == nil || e.Panic.Language != evidence.Rust {
		return nil
	}
	return &e.Messages[e.Panic.Message]
}

// reportingFrames are those of the thread that reported a panic, when it did; nil if no
// replay came there.
func (b *beginnings) reportingFrames(m *evidence.Message) *inFrames {
	var f *inFrames
	err := b.moments.standAt(m.Moment, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		f = &inFrames{frames: unwind.New(p).Walk(t, mostWalkedFrames).Frames, register: image.RIP,
			until: &arrivals{thread: m.Moment.Thread, ordinal: m.Moment.Ordinal - 1}}
		return nil
	})
	if err != nil {
		b.progress.failedPart(err)
	}
	return f
}

// foundWrong reports that the program ended itself because of one value that it tested,
// which only it can have changed: it had one thread.
func foundWrong(c *evidence.Case, rec *record.Recording) bool {
	schedule, err := rec.Log.Schedule()
	if err != nil || len(schedule.Events()) != 1 {
		return false
	}
	switch c.Failure.Kind {
	case evidence.RustPanic, evidence.AssertionFailure, evidence.ExitStatus:
		return true
	}
	return false
}

// follow goes back through the frames. goes: the memory that the value was loaded from
// comes next.
func (f *inFrames) follow(c *chain) (next victim, goes bool) {
	in := staticscan.Input{Process: c.Process, Thread: c.Process.FailingThread()}
	register := f.register
	for k := f.first; k+1 < len(f.frames) && k < f.first+mostFrames; k++ {
		way, a, err := f.course(c, k)
		if err != nil || way == nil {
			c.limitReturned(err)
			return victim{}, false
		}
		var g staticscan.Given
		switch {
		case register == image.RIP && f.ended:
			var condition *staticscan.Condition
			var ok bool
			if condition, g, ok = staticscan.DecidedBy(in, way, len(way.Steps)-1); condition == nil {
				continue // it ends the process whatever it is called with
			}
			if !ok {
				c.decided(condition)
				return victim{}, false
			}
		case register == image.RIP:
			var ok bool
			if g, ok = staticscan.TestedLast(in, way); !ok {
				return victim{}, false
			}
		default:
			g = staticscan.HeldBy(in, way, register)
		}
		switch g.Kind {
		case evidence.OriginArgument:
			register = g.Register
			continue
		case evidence.OriginResult:
			at := way.Steps[g.Step].Registers
			a.pc = at.PC()
			return c.intoCalls(&start{arrivals: a, sp: at.SP(), status: f.ended})
		case evidence.OriginCell:
			name := g.Name
			if !isName(name) {
				name = nameOf(c.Process, c.Object, g.Cell)
			}
			value := g.Value
			return victim{kind: evidence.CauseBadValue, name: name, typ: g.Type, start: g.Cell, size: max(1, min(g.Size, wordSize)), value: &value,
				readPC: way.Steps[g.Step].Registers.PC()}, true
		case evidence.OriginConstant:
			site := g.Site
			out := &returned{function: evidence.ShortName(site.Function), site: &site, kind: evidence.CauseBadValue, value: g.Value,
				how: "set it to " + valueText(g.Value), ledBy: staticscan.LedTo(in, way, g.Step), later: staticscan.LastCondition(in, way, g.Step),
				open: c.foldedEnd(&site, g.Value)}
			if f.ended {
				out.open = evidence.OpenDecision
			}
			c.links = append(c.links, link{victim: c.victim, returned: out})
		}
		return victim{}, false
	}
	return victim{}, false
}

// course is what a frame's function executed, up to where the frame stands.
func (f *inFrames) course(c *chain, k int) (*staticscan.Course, arrivals, error) {
	a, err := c.moments.failingArrivals()
	if err != nil {
		return nil, a, err
	}
	if f.until != nil {
		a = *f.until
	}
	caller := &f.frames[k+1]
	call, ok := staticscan.CallOf(staticscan.Input{Process: c.Process, Thread: c.Process.FailingThread(), Frames: f.frames}, k+1)
	if !ok {
		return nil, a, nil
	}
	from := a
	from.pc = call.PC
	from.is = func(r *image.Registers) bool { return r.SP() == caller.Registers.SP() }
	at, err := c.moments.lastNear(from)
	if err == nil && at.Count == 0 {
		from.events = frameEvents
		at, err = c.moments.last(from)
	}
	if err != nil || at.Count == 0 {
		return nil, a, err
	}
	way := &staticscan.Course{}
	c.out.Coverage.Passes++
	w := &replay.Walk{At: at, Most: mostWalked,
		On:   func(s *replay.Stopped, _ int, regs *image.Registers) error { return way.Take(s, regs) },
		Done: func(*replay.Stopped, *image.Registers) error { return &replay.WalkError{Reason: "it returned"} }}
	_, err = replay.Run(c.progress.ctx, c.rec, replay.WalkRequest{Common: replay.Common{Image: c.Image}, Walk: *w})
	var walk *replay.WalkError
	var moment *replay.MomentError
	if len(way.Steps) == 0 || err != nil && !errors.As(err, &walk) && !errors.As(err, &moment) {
		return nil, a, err
	}
	// It ends in the failure, or in the call that did not return.
	last := way.Steps[len(way.Steps)-1].Registers
	frame := &f.frames[k]
	if last.PC() != frame.PC() && staticscan.Behind(c.Process, last.PC()) != frame.PC() {
		return nil, a, &replay.WalkError{Reason: fmt.Sprintf("it ended at %v, and not at %v", last.PC(), frame.PC())}
	}
	way.SP = frame.CFA
	return way, a, nil
}
