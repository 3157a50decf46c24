package verdict

import (
	"fmt"
	"slices"
	"sync"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/staticscan"
)

// reach tells whether a run came as far as the recorded one, by how often a place is
// reached that the recorded run was at when it failed.
type reach struct {
	in       *Input
	rec      *record.Recording
	progress *progress
	moments  *moments

	once sync.Once
	pc   evidence.Addr // 0: no such place is known
	name string
	// atEnd: the failure was found when none of the program's own code was running any more, or no
	// thread could continue. A run without it ends by itself.
	atEnd bool
	// otherInputs is what the failing instruction read otherwise when the recorded run failed
	// again; empty: nothing.
	otherInputs string
	// moved: it was tried to count at the instruction before.
	moved bool
	// thread is the one that failed: the check is its own. What other threads found there does not tell
	// what it would have found.
	thread uint32
	// tested is the register that holds the bad value at pc; RIP: none is known to.
	tested image.Register
	// recorded are the arrivals of the recorded run; their number is 0 where they were not seen.
	recorded arrived
	// again is how many of them are the instruction once more, after a handler of its fault had
	// returned: a run that does not fault comes there as many times less.
	again uint64
	// handled is the last signal that the failing thread had not done with when it failed, nil if there is none; handledErr is why it is not known.
	handled    *eventlog.HandledSignal
	handledErr error
	// passing are the arrivals of the passing runs, once they were counted; err is why
	// there are none.
	passing []arrived
	counted bool
	err     error
}

// arrived are a run's arrivals at the place of the failure: how many of all threads and of the one that
// failed in the recorded run, and the value that was tested at the last of them, if it is known.
type arrived struct {
	times, own uint64
	// again is how many of the thread's own were after the change.
	again uint64
	value string
}

// mostReached bounds how often a place is counted: each time costs a stop.
const mostReached = 5000

// counter makes a break that counts, until as many arrivals are seen as tell. before are the events of each thread that were made
// when the change came, if it is one of the schedule. What a thread does between two events may be before the change or after: only
// the arrival at which the recorded run failed is after it then.
func (r *reach) counter(seen *arrived, most arrived, before map[uint32]uint64) replay.Break {
	over := func() bool { return seen.times >= mostReached || seen.times >= most.times && seen.own >= most.own }
	return replay.Break{PC: r.pc, Do: func(s *replay.Stopped) error {
		if over() { // before the checkpoint at which the replay began
			return replay.ErrBreakOver
		}
		seen.times++
		if s.Moment.Thread == r.thread {
			seen.own++
			if before == nil || s.Moment.Ordinal > before[r.thread] || r.recorded.own > 0 && seen.own >= r.recorded.own {
				seen.again++
			}
		}
		if r.tested != image.RIP {
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			if v, known := regs.Get(r.tested); known {
				seen.value = valueText(v)
			}
		}
		if over() {
			return replay.ErrBreakOver
		}
		return nil
	}}
}

// carried has what the counter knows carried over to replays that begin later, where the order of events is the recorded one.
func (r *reach) carried(seen *arrived) *replay.Carried {
	type counter struct {
		pc     evidence.Addr
		thread uint32
		tested image.Register
	}
	return &replay.Carried{Of: counter{r.pc, r.thread, r.tested}, Save: func() any { return *seen }, Load: func(x any) { *seen = x.(arrived) }}
}

// check compares what a run found at the place with what it found without the change. own: it is
// of the failing recording. It is nil where the run was not seen there.
func (r *reach) check(t *trial, seen *arrived, own bool) *evidence.FailingCheck {
	c := &evidence.FailingCheck{Place: r.pc, Recorded: r.recorded.own, Arrivals: seen.own, Again: seen.again,
		Before: evidence.CheckedValue{Value: r.recorded.value}, After: evidence.CheckedValue{Value: seen.value, Good: !t.failed}}
	switch {
	case r.atEnd:
		c.Recorded, c.Arrivals, c.Again = 1, 1, 1
	case !own && t.failed: // it came there, as it failed there
		c.Before.Good, c.Recorded, c.Arrivals, c.Again = true, 1, 1, 1
	case !own || r.pc == 0 || r.recorded.own == 0 || slices.Contains(t.unbroken, r.pc):
		return nil
	}
	return c
}

// prepared is the reach, with the place found.
func (r *reach) prepared() *reach {
	r.once.Do(func() {
		r.pc, r.name = r.failedAt()
		r.thread = r.rec.Manifest.Outcome.Thread
		r.atEnd, r.tested = r.pc == 0 && behindMain(r.in.Process) || hangs(r.in.Case, r.rec), testedRegister(r.in.Process, r.in.Blame, r.pc)
		r.again = refaults(r.rec, r.pc)
		var list []eventlog.HandledSignal
		if list, r.handledErr = r.rec.Log.Handled(r.thread); len(list) > 0 {
			r.handled = &list[len(list)-1]
		}
	})
	return r
}

// refaults counts the faults of an instruction whose handlers returned to it. Of a log that
// cannot be read it finds none, so that more arrivals are asked for than need be.
func refaults(rec *record.Recording, pc evidence.Addr) (n uint64) {
	err := rec.Log.Returned(rec.Manifest.Outcome.Thread, func(s *eventlog.HandledSignal, to evidence.Addr) {
		if s.Place == eventlog.PlaceFault && s.PC == pc && to == pc {
			n++
		}
	})
	if err != nil {
		return 0
	}
	return n
}

// failedAt is where the failing thread's own code was. An instruction that faulted is
// it, or the call that led to where the failure was found. Code that gives up, and the
// check of a stack's guard, are what a good run does not come to: there it is the last
// condition before, or the function's entry where none is known.
func (r *reach) failedAt() (evidence.Addr, string) {
	thread := r.in.Process.FailingThread()
	if thread == nil {
		return 0, ""
	}
	const frames = 64
	u := unwind.New(r.in.Process)
	in := staticscan.Input{Process: r.in.Process, Thread: thread, Frames: u.Walk(thread, frames).Frames}
	u.Symbolize(in.Frames)
	own := slices.IndexFunc(in.Frames, func(f unwind.Frame) bool {
		n := len(f.Calls)
		return n > 0 && f.Calls[n-1].Site.Function != "" && !image.LibraryCode(&f.Calls[n-1].Site)
	})
	if own < 0 {
		return 0, ""
	}
	at := in.Frames[own].LookupPC()
	name := ""
	if calls := in.Frames[own].Calls; len(calls) > 0 {
		name = siteText(&calls[0].Site)
	}
	if !endedItself(r.in.Case) && !smashed(r.in.Case) {
		if own == 0 {
			return in.Frames[0].PC(), name
		}
		if call, ok := staticscan.CallOf(in, own); ok {
			return call.PC, name
		}
	}
	if pc := r.lastCondition(in, own); pc != 0 && endedItself(r.in.Case) {
		return pc, name
	}
	if s, ok := r.in.Process.SymbolAt(at); ok {
		return s.Addr, evidence.ShortName(s.Name)
	}
	return 0, ""
}

// hangs reports that the recorded run failed by going no further. The call that a thread waits in is
// not what a good run has to come to.
func hangs(c *evidence.Case, rec *record.Recording) bool {
	return c.Failure.Kind == evidence.Deadlock || rec.Manifest.Outcome.Stuck != ""
}

// behindMain reports that the failing thread had none of the program's own code on its stack.
func behindMain(p *image.Process) bool {
	thread := p.FailingThread()
	return thread != nil && placeOf(p, thread) == ""
}

// testedRegister is the register whose bad value made the instruction at pc fault; RIP: it is not
// known.
func testedRegister(p *image.Process, b *staticscan.Blame, pc evidence.Addr) image.Register {
	thread := p.FailingThread()
	if b == nil || thread == nil || thread.Registers.PC() != pc {
		return image.RIP
	}
	for r := image.RAX; r <= image.R15; r++ {
		if b.Register == r.String() {
			return r
		}
	}
	return image.RIP
}

// smashed reports that the failure was found at the end of a function, by its stack
// guard.
func smashed(c *evidence.Case) bool {
	for i := range c.Findings {
		if c.Findings[i].Kind == evidence.FindingStackGuard {
			return true
		}
	}
	return false
}

// soFar reports why a run that did not fail need not have come as far as the recorded
// one; empty: it did, or passing runs end without coming there as often. The thread that failed has to
// come as often itself: one that was kept back until the others had ended may find nothing left to do.
// A failure with
// none of the program's own code on the stack was behind main. Where the place is known
// and was not seen, in an object that was loaded late, or seen more often than is
// counted, the number of events has to do.
func (r *reach) soFar(t *trial) string {
	count := t.reached.times
	if r.prepared().pc == 0 {
		return ""
	}
	seen := r.recorded.times > 0 && !slices.Contains(t.unbroken, r.pc)
	if seen && (r.rarer(t.reached) || r.rarerOwn(t.reached)) {
		return r.noPassingRunAsRare(t.reached)
	}
	if (!seen || count == mostReached) && t.events < t.total {
		return fmt.Sprintf("it ended too soon to tell: it made %d events, and the recorded run %d", t.events, t.total)
	}
	return ""
}

// signalMissing reports why a run does not tell whether the failure would have come, if that showed in the handler of a signal that came from
// outside: the run had diverged from the recording before, so that signal came elsewhere, or not at all; empty: it had not, or its edits are of
// that signal.
func (r *reach) signalMissing(t *trial, edits []replay.Edit) string {
	last, err := r.prepared().handled, r.prepared().handledErr
	if err != nil {
		return "which signal the failing code handled is not known: " + err.Error()
	}
	if last == nil || t.left == "" {
		return ""
	}
	sig, _ := last.Signal()
	moved := slices.ContainsFunc(edits, func(e replay.Edit) bool {
		return e.Kind == replay.EditDelaySignal && e.At.Thread == last.Thread && e.At.Ordinal == last.Ordinal
	})
	if moved || last.Place == eventlog.PlaceFault || sig.SenderPID == r.rec.Manifest.PID || t.leftAt.Thread != last.Thread || t.leftAt.Ordinal > last.Ordinal {
		return ""
	}
	return fmt.Sprintf("it had diverged from the recording before %s came, in whose handler the recorded run failed", sig.Name)
}

// least is how often a run without the faults that return comes to the place, if it comes as
// far as the recorded one, which came there so many times. Where there are more arrivals than are
// counted, none is taken off; it comes there once at least.
func (r *reach) least(recorded uint64) uint64 {
	if recorded >= mostReached || r.again >= recorded {
		return max(recorded, 1)
	}
	return recorded - r.again
}

// rarer reports whether threads came to the place less often than those of a run that comes as far as
// the recorded one, and rarerOwn whether the thread that failed did.
func (r *reach) rarer(a arrived) bool { return a.times < r.least(r.recorded.times) }

func (r *reach) rarerOwn(a arrived) bool {
	return r.recorded.own > 0 && a.own < r.least(r.recorded.own)
}

// passed reports whether the thread that failed has come to the place more often than in the recorded run, and so past the arrival at which that failed.
func (r *reach) passed(a arrived) bool {
	return r.recorded.own > 0 && r.again == 0 && a.own > r.recorded.own
}

// noPassingRunAsRare reports why no passing run comes as seldom to the place of the failure as a run
// that came there less often than the recorded one; empty: one does. In another run the thread that
// failed is the one of the same number.
func (r *reach) noPassingRunAsRare(a arrived) string {
	if r.countPassing(); r.err != nil {
		return fmt.Sprintf("how often passing runs come to %s is not known: %v", r.name, r.err)
	}
	all, own := r.rarer(a), r.rarerOwn(a)
	for _, p := range r.passing {
		if (!all || p.times <= a.times) && (!own || p.own <= a.own) {
			return ""
		}
	}
	if all {
		return fmt.Sprintf("it ended too soon to tell: it came to %s %s, and the recorded run %s", r.name, countedText(a.times), countedText(r.recorded.times))
	}
	return fmt.Sprintf("it ended too soon to tell: thread %d, which failed in the recorded run, came to %s %s, and there %s",
		r.thread, r.name, countedText(a.own), countedText(r.recorded.own))
}

// guards reports whether a variable's value keeps every passing run from the place of the failure,
// as far as is known: none of them comes there, and the failing function reads the variable.
func (r *reach) guards(variable string) bool {
	r.countPassing()
	comes := func(p arrived) bool { return p.times > 0 }
	if r.err != nil || len(r.passing) == 0 || slices.ContainsFunc(r.passing, comes) || r.in.Case.Scan == nil {
		return false
	}
	return slices.ContainsFunc(r.in.Case.Scan.Suspects, func(s evidence.Suspect) bool {
		return s.Name == variable && s.Proof != evidence.Inferred && s.Access != evidence.Write
	})
}

// countedText is timesText for a count that ends at mostReached.
func countedText(n uint64) string {
	if n == mostReached {
		return timesText(n) + " or more"
	}
	return timesText(n)
}

func timesText(n uint64) string {
	if n == 0 {
		return "never"
	}
	return wording.Times(n)
}

// countPassing counts in the passing runs, as they were recorded.
func (r *reach) countPassing() {
	if r.prepared().counted {
		return
	}
	r.counted = true
	for _, rec := range r.in.Passing {
		seen, err := r.countIn(rec)
		if err != nil {
			r.err = err
			return
		}
		r.passing = append(r.passing, seen)
	}
}

func (r *reach) countIn(rec *record.Recording) (seen arrived, err error) {
	_, err = replay.Run(r.progress.ctx, rec, replay.FreeRequest{Common: replay.Common{Image: r.in.Image}, Breaks: []replay.Break{r.prepared().counter(&seen, arrived{times: mostReached}, nil)}})
	return seen, err
}
