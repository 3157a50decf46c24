package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/staticscan"
)

// Input is a failure and the recordings of it.
type Input struct {
	// Case is what the core of the first failing recording tells, Process that
	// core.
	Case    *evidence.Case
	Process *image.Process
	// Ending is the process as it ended, where Process is what it was when the signal Handled
	// came, whose handler did not return; nil otherwise.
	Ending  *image.Process
	Handled *eventlog.HandledSignal
	// Waits are what the threads of a process that hangs wait for.
	Waits []evidence.WaitEdge
	// Blame is what the static scan makes of the failing instruction; nil if there
	// is none.
	Blame *staticscan.Blame
	// Failing is not empty. Passing are runs of the same program that passed.
	Failing, Passing []*record.Recording
	// Hops is how many stores a bad value is followed back through, Replays how
	// often each experiment is made; 0: DefaultHops, DefaultReplays.
	Hops, Replays int
	// Time bounds the passes and experiments together, with what was Spent before;
	// Hits is watchtrace.Options'; 0: no bound, the usual number.
	Time, Spent time.Duration
	Hits        uint64
	// Object tells of the heap object at an address of the core, nil if there is
	// none.
	Object func(evidence.Addr) *evidence.HeapObject
	// SourceLine is the text of a place's line, ok is false where its source cannot be
	// read; nil: no source can.
	SourceLine func(*evidence.Site) (text string, ok bool)
	// Folded reports whether the compiler computed a value that the code at a place has in itself; nil: it is not known.
	Folded func(site *evidence.Site, value uint64) bool
	Image  image.Options
	// Progress, if set, is told what is being done.
	Progress func(string)
}

// foldedEnd is why a way back ends at a constant of the code before a place that is known to be wrong; empty: it does not.
func (in *Input) foldedEnd(site *evidence.Site, value uint64) evidence.OpenEnd {
	if in.Folded != nil && site != nil && in.Folded(site, value) {
		return evidence.OpenFolded
	}
	return ""
}

// The usual bounds of the work.
const (
	DefaultHops    = 8
	DefaultReplays = 3
)

// MismatchError says that two recordings are not of one program.
type MismatchError struct {
	A, B               string // the recordings
	BuildA, BuildB     string
	ProgramA, ProgramB string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is of %s (build-id %s) and %s of %s (build-id %s): only recordings of one program can be compared",
		e.A, e.ProgramA, buildText(e.BuildA), e.B, e.ProgramB, buildText(e.BuildB))
}

func buildText(id string) string {
	if id == "" {
		return "unknown"
	}
	return id
}

// OutcomeError says that a recording was given for what it is not.
type OutcomeError struct {
	Recording string
	Outcome   string
	Passing   bool // it was given as one of a run that passed
}

func (e *OutcomeError) Error() string {
	if e.Passing {
		return fmt.Sprintf("%s is no recording of a run that passed (%s)", e.Recording, e.Outcome)
	}
	return fmt.Sprintf("%s is no recording of a run that failed (%s); if it failed all the same, say where: 'diagnose crash --failed-at FUNCTION|FILE:LINE|MOMENT', "+
		"or record it with a rule that says so: 'diagnose record --fail-if REGEXP', --fail-if-file PATH or --check COMMAND", e.Recording, e.Outcome)
}

// Check refuses recordings that cannot be used together. The error is a
// *MismatchError or an *OutcomeError.
func Check(failing, passing []*record.Recording) error {
	if len(failing) == 0 {
		return errors.New("no recording of a failing run")
	}
	first := failing[0]
	for _, r := range slices.Concat(failing, passing) {
		a, b := &first.Manifest.Program, &r.Manifest.Program
		if a.BuildID != b.BuildID || a.BuildID == "" && (a.Path != b.Path || a.File != b.File) {
			return &MismatchError{A: first.Dir, B: r.Dir, BuildA: a.BuildID, BuildB: b.BuildID, ProgramA: string(a.Path), ProgramB: string(b.Path)}
		}
	}
	for _, r := range failing {
		if r.Manifest.Outcome.Passed() {
			return &OutcomeError{Recording: r.Dir, Outcome: r.Manifest.Outcome.String()}
		}
	}
	for _, r := range passing {
		if o := &r.Manifest.Outcome; !o.Passed() {
			return &OutcomeError{Recording: r.Dir, Outcome: o.String(), Passing: true}
		}
	}
	return nil
}

// Diagnose finds the causes. What it could not do is in the Diagnosis's
// Coverage.Limits; the error is of what nothing can be said without: recordings
// that do not fit together. When ctx ends it returns soon, with what was found
// until then, and the Diagnosis says so.
func Diagnose(ctx context.Context, in Input) (*evidence.Diagnosis, error) {
	if err := Check(in.Failing, in.Passing); err != nil {
		return nil, err
	}
	w := newWork(ctx, in)
	defer w.progress.bound(w.Time, w.Spent)()
	started := time.Now()
	for _, part := range []struct {
		name string
		run  func() error
	}{{"memory errors", w.memory}, {"deadlocks", w.deadlocks}, {"held locks", w.heldLocks}, {"wakeups", w.wakeups}, {"waits", w.blindWait}, {"orders of accesses", w.concurrency}, {"stray stores", w.stray}, {"branches of passing runs", w.branches.find}, {"what decided earlier", w.tracedCauses.decidedEarlier}} {
		if w.progress.stopsBefore(part.name) {
			continue
		}
		if err := part.run(); err != nil && !w.progress.stopsBefore(part.name) {
			w.progress.failedPart(err)
		}
	}
	w.progress.limitUndone(w.Time)
	w.asRecorded()
	w.out.Interrupted = w.progress.ended() == errInterrupted
	w.conclusion.fromOrigin()
	w.declaredNull()
	w.tracedCauses.leadOfConditions()
	w.tracedCauses.leadOfChanged()
	w.tracedCauses.comparedValues()
	w.tracedCauses.tellShared()
	w.conclusion.rank()
	w.branches.lead()
	w.tracedCauses.ofNoElements()
	w.conclusion.setBases()
	w.conclusion.setLeadsApart()
	w.conclusion.reword()
	w.out.Coverage.Nanoseconds = time.Since(started).Nanoseconds()
	return w.out, nil
}

// asRecorded says how far the replay that the experiments began with was the recorded failure. Where
// no replay failed as recorded, what replays showed is of another run, and no cause is named.
func (w *work) asRecorded() {
	e := w.experiments.baselines[replayOf{w.rec, w.rec}]
	switch {
	case e.Runs > 0 && e.Failed == 0 && (e.Undecided == "" || w.progress.ended() != errInterrupted): // which ends the replay's process as well
		w.progress.limit(evidence.Limit{Code: evidence.LimitNeverReplayed, Severe: true, Of: uint64(e.Runs), Reason: cmp.Or(e.Undecided, e.Outcome)})
		fromReplay := func(c evidence.Cause) bool { return c.Proof != evidence.FromCore }
		w.out.Causes = slices.DeleteFunc(w.out.Causes, fromReplay)
		w.conclusion.asides = slices.DeleteFunc(w.conclusion.asides, fromReplay)
		w.conclusion.apart = nil
	case w.reached.otherInputs != "":
		w.progress.limit(evidence.Limit{Code: evidence.LimitSimilarFailure, Severe: true, Names: []string{w.reached.otherInputs}})
	}
}

// newWork is the work on an Input that Check has passed, without its bound of time.
func newWork(ctx context.Context, in Input) *work {
	if in.Hops <= 0 {
		in.Hops = DefaultHops
	}
	if in.Replays <= 0 {
		in.Replays = DefaultReplays
	}
	out := &evidence.Diagnosis{Recording: in.Failing[0].Dir, Failing: len(in.Failing), Passing: len(in.Passing)}
	w := &work{Input: in, rec: in.Failing[0], out: out,
		inputs: inputs{}, exact: newExact(&in)}
	w.progress = &progress{ctx: ctx, tell: in.Progress, coverage: &out.Coverage}
	w.faults = &faultHandlers{in: &w.Input, rec: w.rec}
	w.conclusion = &conclusion{in: &w.Input, out: out}
	w.moments = &moments{progress: w.progress, rec: w.rec, files: in.Image, handled: in.Handled}
	w.reached = &reach{in: &w.Input, rec: w.rec, progress: w.progress, moments: w.moments}
	w.stacks = &stackVariables{progress: w.progress, rec: w.rec, process: in.Process, objects: in.Object, places: map[string]stackPlace{}}
	w.heap = &heapTargets{in: &w.Input, rec: w.rec, progress: w.progress}
	w.tracer = &tracer{in: &w.Input, rec: w.rec, out: out, progress: w.progress, stacks: w.stacks}
	w.earlyReads = &earlyReads{process: in.Process, objects: in.Object}
	w.scope = &scope{in: &w.Input, rec: w.rec, exact: w.exact, stacks: w.stacks, heap: w.heap, early: w.earlyReads}
	w.victims = &victimSearch{in: &w.Input, progress: w.progress, moments: w.moments, exact: w.exact}
	w.beginnings = &beginnings{in: &w.Input, rec: w.rec, progress: w.progress, moments: w.moments}
	w.branches = &divergenceSearch{in: &w.Input, out: out, progress: w.progress, exact: w.exact, conclusion: w.conclusion}
	w.visits = &visits{in: &w.Input, progress: w.progress, moments: w.moments}
	w.experiments = &experiments{in: &w.Input, rec: w.rec, progress: w.progress, reach: w.reached, faults: w.faults,
		end: &recordedEnd{in: &w.Input, rec: w.rec, faults: w.faults}, replays: in.Replays, baselines: map[replayOf]evidence.Experiment{}}
	w.tracedCauses = &tracedCauses{in: &w.Input, rec: w.rec, out: out, progress: w.progress, moments: w.moments, exact: w.exact, early: w.earlyReads,
		conclusion: w.conclusion, experiments: w.experiments}
	return w
}

// work is one diagnosis.
type work struct {
	Input
	progress     *progress
	moments      *moments
	rec          *record.Recording
	out          *evidence.Diagnosis
	conclusion   *conclusion
	reached      *reach
	experiments  *experiments
	faults       *faultHandlers
	stacks       *stackVariables
	tracer       *tracer
	visits       *visits
	branches     *divergenceSearch
	tracedCauses *tracedCauses
	beginnings   *beginnings
	victims      *victimSearch
	scope        *scope
	earlyReads   *earlyReads
	heap         *heapTargets
	inputs       inputs
	exact        *exact
}
