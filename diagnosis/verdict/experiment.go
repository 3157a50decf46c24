package verdict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// trial is one replay's end, compared with the recorded failure.
type trial struct {
	failed    bool
	outcome   string
	end       *evidence.RunEnd
	undecided string
	// endless: it was after the failure and went on without an end.
	endless bool
	// elsewhere says why a run that did not fail as recorded did not go well either;
	// empty: it did, as far as can be told.
	elsewhere string
	// reached is how often it came to the place of the failure, events how many
	// events it made, of so many in the recording.
	reached       arrived
	events, total uint64
	unbroken      []evidence.Addr
	// faults are the signals that the program's handlers of faults got.
	faults *handledFaults
	// inputs is what the failing instruction read otherwise than the recorded one; empty: nothing.
	inputs string
	// left is where the run left the recording, in words, and the thread's event then; empty: it did not.
	left   string
	leftAt evidence.Moment
	// later: the thread that failed came past the failure, and failed at another of its arrivals.
	later bool
	// check is what the run found where the recorded one failed; nil: it was not seen.
	check *evidence.FailingCheck
}

// experiments replays runs with changes, and compares how they end with the recorded failure.
type experiments struct {
	in       *Input
	rec      *record.Recording
	progress *progress
	reach    *reach
	faults   *faultHandlers
	end      *recordedEnd
	// replays is how often an experiment is made.
	replays int
	// baselines are the replays of runs as they were.
	baselines map[replayOf]evidence.Experiment
}

// times are the experiments, each made so often.
func (x *experiments) times(n int) *experiments {
	other := *x
	other.replays = n
	return &other
}

// replayed replays some times with a change and says whether the failure came. A
// run without it has to go well, and to come as far as the recorded one: one that ends
// elsewhere may have stopped too soon, or because of the change.
func (x *experiments) replayed(what string, rec *record.Recording, opts replay.FreeRequest, expect bool) evidence.Experiment {
	return x.repeat(what, expect, func() trial { return x.once(rec, opts, expect) })
}

// endingByItself is the same, with a status other than 0 for the run's own: it ends by itself as it would without the failure.
func (x *experiments) endingByItself() *experiments {
	other, end := *x, *x.end
	end.ownStatus, other.end = true, &end
	return &other
}

// without is replayed for a change with which the recorded run has not to fail.
func (x *experiments) without(c *change) evidence.Experiment {
	if c.keeps && x.in.Case.Failure.Kind != evidence.ExitStatus {
		x = x.endingByItself()
	}
	e := x.repeat(c.what, false, func() trial {
		opts := c.options
		if c.breaks != nil {
			opts.Breaks = c.breaks()
		}
		return x.once(x.rec, opts, false)
	})
	e.Change = c.event
	return e
}

// once makes one replay, and judges one that went well.
func (x *experiments) once(rec *record.Recording, opts replay.FreeRequest, expect bool) trial {
	own := rec == x.rec
	altered := opts.Schedule != nil || len(opts.Edits)+len(opts.Hooks) > 0 || slices.ContainsFunc(opts.Breaks, func(b replay.Break) bool { return b.Changes })
	var seen arrived
	if r := x.reach.prepared(); own && r.pc != 0 {
		most := arrived{times: mostReached}
		before, err := unchangedEvents(rec, opts.Schedule)
		if err != nil {
			return trial{undecided: err.Error()}
		}
		if r.recorded.times > 0 {
			most = r.recorded
		}
		if altered {
			most.times, most.own = most.times+1, most.own+1 // to see whether it came past the failure
		}
		if len(opts.Breaks) == 0 {
			opts.Carried = r.carried(&seen)
		}
		opts.Breaks = append([]replay.Break{r.counter(&seen, most, before)}, opts.Breaks...)
	}
	t := x.outcome(rec, opts)
	if r := x.reach.prepared(); own && expect && slices.Contains(t.unbroken, r.pc) && !r.moved {
		// The replay needs the instruction itself, as it does where a handled fault comes.
		if r.moved = true; x.reach.countBefore() {
			opts.Breaks, opts.Carried = opts.Breaks[1:], nil
			return x.once(rec, opts, expect)
		}
	}
	t.reached = seen
	switch {
	case t.undecided != "":
	case !altered && t.left != "":
		// Another run may fail in the same place, or pass, for another reason.
		t.undecided = "it did not come to its end by the recorded way: " + t.left
	case expect:
		if own && t.failed && t.inputs != "" && !altered {
			x.reach.prepared().otherInputs = t.inputs
			t.undecided = "it failed in the same place, where " + t.inputs + " was another"
		}
		if own && t.failed && len(opts.Edits) == 0 && opts.Schedule == nil && !slices.Contains(t.unbroken, x.reach.prepared().pc) {
			x.reach.prepared().recorded = seen
		}
	case t.failed:
		if t.later = own && altered && x.reach.passed(seen); t.later && opts.Schedule == nil {
			t.undecided = "it came past the place where the recorded run failed, and failed there later"
		}
	case t.elsewhere != "":
		t.undecided = t.elsewhere
	case own:
		if t.undecided = x.reach.soFar(&t); t.undecided == "" {
			t.undecided = cmp.Or(x.faults.recurred(t.faults), x.reach.signalMissing(&t, opts.Edits))
		}
	}
	if t.undecided == "" {
		t.check = x.reach.prepared().check(&t, &seen, own)
	}
	return t
}

// unchangedEvents are how many events each thread has made where a schedule first differs from the recorded one. It is nil without a
// schedule.
func unchangedEvents(rec *record.Recording, changed eventlog.Schedule) (map[uint32]uint64, error) {
	if changed == nil {
		return nil, nil
	}
	recorded, err := rec.Log.Schedule()
	if err != nil {
		return nil, fmt.Errorf("the recorded order: %w", err)
	}
	return recorded.Common(changed), nil
}

// replayOf is a recording that is replayed while the failure of another one, or of the same,
// is explained.
type replayOf struct{ explained, rec *record.Recording }

// unchanged replays a recorded run as it was, and says whether it fails as recorded. What
// a recording's experiments are compared with is replayed once.
func (x *experiments) unchanged(rec *record.Recording) evidence.Experiment {
	key := replayOf{x.rec, rec}
	e, done := x.baselines[key]
	if !done {
		e = x.replayed("the recorded run again", rec, replay.FreeRequest{}, true)
		e.Control = true
		x.baselines[key] = e
	}
	return e
}

func (x *experiments) repeat(what string, expect bool, try func() trial) evidence.Experiment {
	e := evidence.Experiment{What: evidence.Say(what), Expect: expect}
	if x.rec.Manifest.Outcome.Declared != nil {
		e.Undecided = "whether a changed run fails is not known: the rule that says so is not applied to replays"
		return e
	}
	for range x.replays {
		if x.progress.stopsBefore("experiments") {
			e.Undecided = x.progress.ended().Error()
			break
		}
		x.progress.say("experiment: %s, replay %d of %d", what, e.Runs+1, x.replays)
		t := try()
		if t.undecided != "" && x.progress.stopsBefore("experiments") {
			e.Undecided = x.progress.ended().Error()
			break
		}
		e.Runs++
		if t.failed {
			e.Failed++
		}
		e.Outcome, e.End, e.Undecided, e.Check = evidence.Say(t.outcome), t.end, evidence.Say(t.undecided), t.check
		if t.undecided != "" {
			break
		}
	}
	return e
}

// An experiment may compute so long without an event: a thread that waits for what
// another one no longer does may never end.
const (
	trialLeast = 5 * time.Second
	trialTimes = 10
)

func (x *experiments) outcome(rec *record.Recording, opts replay.FreeRequest) trial {
	var t trial
	opts.Image = x.in.Image
	times := &rec.Manifest.Times
	opts.Computing = trialLeast + trialTimes*time.Duration(times.UserNS+times.SystemNS)
	opts.AtEnd = func(s *replay.Stopped) error { return x.end.compare(&t, s) }
	h := x.faults.prepared()
	var seen []replay.Break
	if t.faults, seen = h.observe(); len(seen) > 0 {
		opts.Carried = nil // what they know has the kernel's ids of threads
	}
	opts.Breaks = append(seen, opts.Breaks...)
	result, err := replay.Run(x.progress.ctx, rec, opts)
	if result != nil {
		t.events, t.total, t.unbroken = result.Events, result.Total, result.Unbroken
		if result.Left != nil {
			t.left, t.leftAt = result.Left.Error(), result.Left.Moment
		}
		t.faults.cut = t.faults.cut || slices.ContainsFunc(h.entries, func(pc evidence.Addr) bool { return slices.Contains(result.Unbroken, pc) })
	}
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	ended := x.rec.Manifest.Outcome.Signal == 0 // by itself
	switch {
	case errors.As(err, &stuck) && x.in.Case.Failure.Kind == evidence.Deadlock:
		t.failed, t.outcome, t.end = true, "no thread could continue", &evidence.RunEnd{Kind: evidence.RunEndBlocked}
	case errors.As(err, &stuck) && stuck.Cause == replay.StuckEvents && ended:
		t.undecided = "it ran far past the recorded end, where the failure showed"
	case errors.As(err, &stuck) && stuck.Cause == replay.StuckEvents:
		t.failed, t.outcome, t.endless = false, "it ran far past the recorded end without failing", true
		t.end = &evidence.RunEnd{Kind: evidence.RunEndEndless}
	case errors.As(err, &stuck):
		t.undecided = "the process did not end: " + err.Error()
	case errors.As(err, &diverged):
		t.undecided = "the replay diverged from the recording: " + err.Error()
	case err != nil:
		t.undecided = err.Error()
	case result.End == replay.EndIdle && ended:
		t.undecided = "it waits for input that the recording does not have, and the failure showed at the end"
	case result.End == replay.EndIdle:
		t.failed, t.outcome, t.end = false, "it waits for input that the recording does not have", &evidence.RunEnd{Kind: evidence.RunEndInput}
	case result.MadeUp > 0 && t.failed:
		t.outcome += fmt.Sprintf(", with results of %d calls that the log does not have", result.MadeUp)
	}
	return t
}

// recordedEnd is how the recorded run ended, which the ends of replays are compared with.
type recordedEnd struct {
	in     *Input
	rec    *record.Recording
	faults *faultHandlers
	// ownStatus: whatever status a run ends by is its own.
	ownStatus bool
}

// compare looks at the process at its end.
func (e *recordedEnd) compare(t *trial, s *replay.Stopped) error {
	recorded := &e.rec.Manifest.Outcome
	if s.Signal == 0 {
		t.outcome, t.end = fmt.Sprintf("exit status %d", s.Status), &evidence.RunEnd{Kind: evidence.RunEndExit, Status: s.Status}
		return e.compareStatus(t, s)
	}
	function, pc, err := failingPlace(s)
	if err != nil {
		return err
	}
	t.outcome = unix.SignalName(unix.Signal(s.Signal))
	t.end = &evidence.RunEnd{Kind: evidence.RunEndSignal, Signal: t.outcome, Function: function}
	if function != "" {
		t.outcome += " in " + function
	}
	t.failed = s.Signal == recorded.Signal && e.sameInstruction(pc) && e.samePlace(function)
	if t.failed {
		p, err := s.Process()
		if err != nil {
			return err
		}
		t.inputs = e.otherInputs(p)
		t.failed, t.undecided = e.faults.sameHandled(s.TID(), t.faults)
	}
	if err := e.compareError(t, s); err != nil {
		return err
	}
	if err := e.compareFill(t, s); err != nil {
		return err
	}
	if !t.failed {
		t.elsewhere = "the run then failed elsewhere: " + t.outcome
		t.outcome = otherwise + t.outcome
	}
	return nil
}

// compareStatus looks at a process that ended itself. A status is the recorded one only if it
// was given in the same function.
func (e *recordedEnd) compareStatus(t *trial, s *replay.Stopped) error {
	recorded := &e.rec.Manifest.Outcome
	same := recorded.Signal == 0 && s.Status == recorded.Status
	if same {
		there, err := e.endsThere(s)
		if err != nil {
			return err
		}
		if !there {
			t.elsewhere = fmt.Sprintf("the run then ended by %s in another function", t.outcome)
			return nil
		}
		if same, t.undecided = e.faults.sameHandled(s.TID(), t.faults); !same {
			t.elsewhere = fmt.Sprintf("the run then ended by %s after another signal was handled", t.outcome)
			return nil
		}
	}
	if same {
		var err error
		if t.failed, err = e.stillDamaged(s); err != nil {
			return err
		}
		if !t.failed && e.in.Case.Failure.Kind == evidence.ExitStatus {
			t.undecided = "the run then ended as the recorded one did, only without the damage"
		}
	}
	if !same && !e.passes(s.Status) {
		t.elsewhere = fmt.Sprintf("the run then ended by %s, by which no run that passes does", t.outcome)
	}
	return nil
}

// endsThere reports whether a process ended itself in the function in which the recorded one
// did.
func (e *recordedEnd) endsThere(s *replay.Stopped) (bool, error) {
	end := e.in.Process
	if e.in.Ending != nil {
		end = e.in.Ending
	}
	thread := end.FailingThread()
	if thread == nil {
		return true, nil
	}
	p, err := s.Process()
	if err != nil {
		return false, err
	}
	now := p.FailingThread()
	return now == nil || placeOf(p, now) == placeOf(end, thread), nil
}

// samePlace reports whether the recorded run failed in a function, as far as both are known.
// Of a process none of whose threads could go on, it is where the thread was that found
// that out; what the report is headed by is another one's place.
func (e *recordedEnd) samePlace(function string) bool {
	if e.in.Ending != nil {
		t := e.in.Ending.FailingThread()
		return t == nil || placeOf(e.in.Ending, t) == function
	}
	site := e.in.Case.Failure.Site
	if site == nil || function == "" {
		return true
	}
	recorded := &e.rec.Manifest.Outcome
	if recorded.Stuck == "" {
		// A handler may have ended the process: the report is headed by what it interrupted.
		t := e.in.Process.FailingThread()
		return evidence.ShortName(site.Function) == function || t != nil && placeOf(e.in.Process, t) == function
	}
	for i := range e.in.Process.Threads {
		if t := &e.in.Process.Threads[i]; t.Ref.TID == recorded.TID {
			found := placeOf(e.in.Process, t)
			return found == "" || found == function
		}
	}
	return true
}

// passes reports whether a run that ends with a status is known to have passed.
func (e *recordedEnd) passes(status int) bool {
	return e.ownStatus || status == 0 || slices.ContainsFunc(e.in.Passing, func(r *record.Recording) bool {
		o := &r.Manifest.Outcome
		return o.Signal == 0 && o.Status == status
	})
}

// otherwise begins the outcome of a run that a signal ended in another way than the
// recorded one.
const otherwise = "failed otherwise, with "

// compareFill looks whether a pointer from freed memory, by which the recorded run
// failed, is from the same object again.
func (e *recordedEnd) compareFill(t *trial, s *replay.Stopped) error {
	recorded, err := e.filled(e.in.Process)
	if len(recorded) == 0 || err != nil || !t.failed {
		return err
	}
	p, err := s.Process()
	if err != nil {
		return err
	}
	now, err := e.filled(p)
	if err != nil || slices.ContainsFunc(now, func(o evidence.Addr) bool { return slices.Contains(recorded, o) }) {
		return err
	}
	t.failed = false
	t.outcome += ", not because of this object"
	if len(now) > 0 {
		t.outcome += fmt.Sprintf(" but of the one at %v", now[0])
	}
	return nil
}

// filled are the freed objects whose fill the failing thread has in its registers,
// if a finding says that it failed by one.
func (e *recordedEnd) filled(p *image.Process) ([]evidence.Addr, error) {
	read := func(f evidence.Finding) bool { return f.Kind == evidence.FindingUseAfterFree && f.Damage == nil }
	thread := p.FailingThread()
	if thread == nil || e.in.Case.Failure.Fault == nil || !slices.ContainsFunc(e.in.Case.Findings, read) {
		return nil, nil
	}
	heap, err := agent.Open(p, 0)
	if err != nil {
		return nil, err
	}
	var list []evidence.Addr
	for _, r := range thread.Registers.General() {
		o, _, found, err := heap.FillWord(uint64(r.Value))
		if err != nil {
			return nil, err
		}
		if found && !slices.Contains(list, o.Addr) {
			list = append(list, o.Addr)
		}
	}
	return list, nil
}

// compareError looks whether the agent ended the process because of the same
// object: one defect may have damaged others as well.
func (e *recordedEnd) compareError(t *trial, s *replay.Stopped) error {
	recorded, err := fatalError(e.in.Process)
	if recorded == nil || err != nil || !t.failed {
		return err
	}
	now, err := fatalError(s)
	switch {
	case err != nil:
		return err
	case now == nil:
		t.failed = false
		t.outcome += ", not ended by the agent"
	case now.Kind != recorded.Kind || now.Pointer != recorded.Pointer:
		t.failed = false
		t.outcome += fmt.Sprintf(", because of another object, at %v", now.Pointer)
	}
	return nil
}

// fatalError is what the agent ended a process for, nil if it did not.
func fatalError(m agent.Memory) (*agent.Error, error) {
	heap, err := agent.Open(m, 0)
	if errors.Is(err, agent.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, _, err := heap.Errors()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Fatal {
			return &list[i], nil
		}
	}
	return nil, nil
}

// stillDamaged compares what the findings name with the core: of a run that
// ended by itself, damage is the failure.
func (e *recordedEnd) stillDamaged(m agent.Memory) (bool, error) {
	for _, f := range e.in.Case.Findings {
		if f.Damage == nil {
			continue
		}
		size := min(int(f.Damage.End-f.Damage.Start), 64)
		now, recorded := make([]byte, size), make([]byte, size)
		for _, x := range []struct {
			m     agent.Memory
			bytes []byte
		}{{m, now}, {e.in.Process, recorded}} {
			if n, err := x.m.ReadMemory(f.Damage.Start, x.bytes); err != nil || n != size {
				return false, fmt.Errorf("the damaged memory at %v cannot be read: %d of %d bytes: %w", f.Damage.Start, n, size, cmp.Or(err, io.ErrUnexpectedEOF))
			}
		}
		if !bytes.Equal(now, recorded) {
			return false, nil
		}
	}
	return true, nil
}

// sameInstruction reports whether the recorded run ended at an instruction, if it was one
// that faulted. A handler of the fault that sent a signal did so by a call, whose place is
// the recording library's.
func (e *recordedEnd) sameInstruction(pc evidence.Addr) bool {
	p := e.in.Process
	if e.in.Ending != nil {
		p = e.in.Ending
	}
	thread := p.FailingThread()
	if e.in.Case.Failure.Fault == nil || e.in.Ending != nil && thread != nil && thread.Signal != nil && thread.Signal.Code <= 0 {
		return true
	}
	return thread != nil && thread.Registers.PC() == pc
}

// failingPlace is where the thread ended, and the innermost function of the
// program's own there.
func failingPlace(s *replay.Stopped) (function string, pc evidence.Addr, err error) {
	p, err := s.Process()
	if err != nil {
		return "", 0, err
	}
	thread := p.FailingThread()
	if thread == nil {
		return "", 0, nil
	}
	return placeOf(p, thread), thread.Registers.PC(), nil
}

// placeOf is the innermost function of the program's own that a thread is in; empty: it is
// in none.
func placeOf(p *image.Process, thread *image.Thread) string {
	u := unwind.New(p)
	stack := u.Walk(thread, 64)
	u.Symbolize(stack.Frames)
	return ownFunction(stack.Frames)
}

// ownFunction is the innermost function of the program's own in frames.
func ownFunction(frames []unwind.Frame) string {
	for _, f := range frames {
		for _, call := range f.Calls {
			if !image.LibraryCode(&call.Site) {
				return evidence.ShortName(call.Site.Function)
			}
		}
	}
	return ""
}
