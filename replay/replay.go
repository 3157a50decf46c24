package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
	"diagnose/replay/verify"
)

// Hook is a function to call at a point of a replay.
type Hook struct {
	At evidence.Moment
	// Do is called with all threads stopped. An error ends the replay.
	Do func(*Stopped) error
	// Every: Do is called at each arrival of the thread at the Moment's PC, from the Count-th
	// until its next event. It is no error if there is no arrival.
	Every bool
	// step: the thread is stepped from this point. A replay may never reach it.
	step *StepWindow
	// walk: the thread follows a call from this point.
	walk *walker
	// debug: the debugger stops there.
	debug bool
	// keep, if it is not 0, is the position of a checkpoint that the replay leaves there.
	keep uint64
}

// ErrEnough is returned by a Hook to end the replay at that point.
var ErrEnough = errors.New("replay: stopped on request")

// EndKind is how a replay ended.
type EndKind string

// The ends of a replay.
const (
	EndFailure  EndKind = "failure"  // the recorded signal
	EndExit     EndKind = "exit"     // the recorded end of the process
	EndExec     EndKind = "exec"     // the process executed another program
	EndLog      EndKind = "log"      // the last event of a recording that was cut off
	EndFault    EndKind = "fault"    // an instruction that failed after the last event of such a recording
	EndMoment   EndKind = "moment"   // a Moment where a Hook ended the replay
	EndDiverged EndKind = "diverged" // the replay diverged from the recording
	EndStuck    EndKind = "stuck"    // the replay made no progress
	EndIdle     EndKind = "idle"     // in a free replay: all threads wait for input that the recording does not have
)

// Result is the outcome of a replay.
type Result struct {
	End EndKind
	// Moment is where the failing thread was at the end, or the thread that diverged.
	Moment evidence.Moment
	Signal int
	Status int
	// Events is the number of events replayed, of Total.
	Events, Total uint64
	// Turns counts how often a thread got the right to run: equal in every replay of a schedule that
	// comes as far. 0: the recording's engine does not count.
	Turns uint64
	// Timing is the timing used. If none worked, Tried lists those tried, and Timing is the one
	// that got furthest.
	Timing record.Timing
	Tried  []record.Timing
	// StepsCut: a thread of a StepRequest had more instructions between two events than its share.
	StepsCut bool
	// Steps is the number of instructions that a StepRequest has stepped.
	Steps uint64
	// Comparison is the comparison with the recorded end. It is nil if none was requested or the
	// replay did not reach the end.
	Comparison *Comparison
	// Hits counts the hits that were passed to OnHit, Lost those that were not. Backend is the
	// back end that traced them.
	Hits, Lost uint64
	Backend    Backend
	// Unseen counts, by watch, how often a word had changed since the last access that
	// BackendProbe saw. Unprobed are the addresses of Watching.Probes that it could not see. Stops
	// counts the possible accesses for which it had to stop.
	Unseen   []uint64
	Unprobed []evidence.Addr
	Stops    uint64
	// Arrivals counts the arrivals of a ProbeRequest. Moved and Trapped count its instructions by how
	// threads stopped: in a moved copy of the code, or at an int3. Unreachable are those where no
	// thread could be stopped.
	Arrivals       uint64
	Moved, Trapped int
	// Handled counts the arrivals that Rules have handled in the process, Ruled the instructions at which they ran. Asked counts those at
	// which a thread waited in its code for the tool, without a stop.
	Handled     uint64
	Asked       uint64
	Ruled       int
	Unreachable []evidence.Addr
	// Unbroken are the FreeRequest.Breaks that were removed because they conflicted with the
	// replay's own needs.
	Unbroken []evidence.Addr
	// Left is where a free replay diverged from the recording; nil if it did not. MadeUp counts
	// the calls whose results were not in the log.
	Left   *DivergenceError
	MadeUp uint64
	// Idle are the waiting threads of a replay that ended with EndIdle.
	Idle []WaitingThread
	// Limits name what the recording cannot restore, and what could not be compared.
	Limits []string
	Times  Times
	// looks counts how often a thread that computed without an event was stepped.
	looks int
}

// Times are how long the parts of a replay took.
type Times struct {
	Prepare, Run, Verify time.Duration
}

// Run replays a recording. If the replay diverges from the recording or gets stuck, the error is a
// *DivergenceError or a *StuckError, and the result is not nil.
//
// Several replays may run at once. In a context of KeepCheckpoints they begin as late as they can.
func Run(ctx context.Context, rec *record.Recording, request Request) (*Result, error) {
	p := request.parts()
	if k := keptOf(ctx); k != nil {
		return k.run(ctx, rec, p)
	}
	return run(ctx, rec, p)
}

// run makes a replay from where the request says.
func run(ctx context.Context, rec *record.Recording, p parts) (*Result, error) {
	if p.free != nil {
		return runFree(ctx, rec, p)
	}
	if p.from != nil {
		p.Timing = p.from.timing
	}
	if p.Timing == "" {
		return runAuto(ctx, rec, p)
	}
	a := &attempt{timing: p.Timing}
	a.perform(ctx, rec, p)
	return a.result, a.err
}

// prepare does the work that needs no process.
func (c *controller) prepare() error {
	if err := c.request.checkWatches(); err != nil {
		return err
	}
	if c.Rec.Live() {
		return tracee.Inputf("replay: %s is still being recorded; it can be replayed when its process has ended", c.Rec.Dir)
	}
	if err := c.openRecordings(); err != nil {
		return err
	}
	for _, s := range c.Stages {
		c.result.Limits = append(c.result.Limits, s.Limits...)
	}
	last := c.Stages[len(c.Stages)-1]
	c.result.Total = last.Events
	if f := c.attempt.free; f != nil {
		if err := f.prepare(last); err != nil {
			return err
		}
	}
	hooks := slices.Concat(c.request.leaving.hooks(last.Schedule, c.attempt.timing), c.request.Hooks)
	if w := c.request.walk; w != nil {
		hooks = slices.Insert(hooks, 0, Hook{At: w.At, walk: newWalker(w, c.Process)})
	}
	if asked := c.request.step; asked != nil {
		c.stepper = step.New(asked, c.Process, c.placer)
		hooks = slices.Concat(stepHooks(c.stepper), hooks)
	}
	if d := c.debugging; d != nil {
		c.stepper = d.newStepper()
		for _, at := range d.asked.Events {
			hooks = append(hooks, Hook{At: evidence.Moment{Thread: at.Thread, Ordinal: at.Ordinal}, debug: true})
		}
	}
	var err error
	c.hooks.list, err = orderHooks(last.Schedule, hooks)
	return err
}

// openRecordings opens the files of the replay and makes the images.
func (c *controller) openRecordings() error {
	if err := c.openCore(); err != nil || c.request.from != nil {
		return err
	}
	var err error
	if c.Stages, err = recorded.OpenStages(c.Rec); err != nil {
		return err
	}
	for i, s := range c.Stages {
		var core *image.Process
		var preemptions []eventlog.Preemption
		if i == len(c.Stages)-1 {
			core, s.Schedule, preemptions = c.Core, c.request.schedule, c.request.Preemptions
		}
		if err := s.Prepare(core, preemptions, c.attempt.timing); err != nil {
			return err
		}
	}
	return nil
}

// openCore opens the recorded end, if there is one.
func (c *controller) openCore() error {
	path, err := c.Rec.Core()
	if err == nil {
		c.Core, err = image.OpenCore(path, c.request.Image)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return tracee.Inputf("replay: the recording's core: %w", err)
	}
	if c.Core == nil && c.request.verify {
		return withoutCore(c.Rec)
	}
	return nil
}

// withoutCore returns the error for a recording that has no core to compare with.
func withoutCore(rec *record.Recording) error {
	if rec.Manifest.Outcome.Kind != record.OutcomeExec {
		return tracee.Inputf("replay: %s has no core to compare with", rec.Dir)
	}
	for _, c := range rec.Manifest.Children {
		if c.Exec && c.PID == rec.Manifest.PID {
			return tracee.Inputf("replay: %s ends where the process executed another program, and has no core to compare with; that program's recording is %s",
				rec.Dir, filepath.Join(rec.Dir, filepath.FromSlash(c.Path)))
		}
	}
	return tracee.Inputf("replay: %s ends where the process executed another program, and has no core to compare with", rec.Dir)
}

// serve runs the replay on the tracing thread.
func (c *controller) serve() error {
	started := time.Now()
	defer c.Kill()
	begin := c.begins()
	if err := begin.make(); err != nil {
		return err
	}
	c.watch = startWatchdog(c)
	defer c.probing.close()
	defer c.watch.stop()
	defer func() {
		if c.tracing != nil {
			c.tracing.Stop()
		}
	}()
	err := begin.run()
	if err == nil {
		err = c.loop()
	}
	if err != nil {
		return err
	}
	c.watch.stop()
	if err := c.StopAll(); err != nil {
		return err
	}
	if err := c.breaks.remove(); err != nil {
		return err
	}
	if err := c.probing.finish(c.result); err != nil {
		return err
	}
	c.result.Times.Run = time.Since(started)
	if c.tracing != nil {
		if err := c.tracing.Finish(c.end.thread); err != nil {
			return err
		}
		n := &c.tracing.Counts
		r := c.result
		r.Hits, r.Lost, r.Backend, r.Unseen, r.Unprobed, r.Stops = n.Hits, n.Lost, n.Backend, n.Unseen, n.Unprobed, n.Stops
	}
	return c.finish()
}

// beginning makes the process of a replay, and lets it run.
type beginning struct{ make, run func() error }

func (c *controller) begins() beginning {
	if from := c.request.from; from != nil {
		return beginning{func() error {
			if err := c.copyProcess(from); err != nil {
				return &copyError{err}
			}
			return nil
		}, func() error { return c.continueFrom(from) }}
	}
	return beginning{c.start, func() error {
		first := c.Threads[c.PID]
		if err := c.armWatches(first); err != nil {
			return err
		}
		return c.cont(first, 0)
	}}
}

// finish fills in the result from the stopped process at the end.
func (c *controller) finish() error {
	r := c.result
	if c.stepper != nil {
		c.stepper.Finish()
		r.StepsCut, r.Steps = c.stepper.Cut, c.stepper.Done()
	}
	if h := c.hooks.missed(); h != nil && c.end.failure == nil && c.end.kind != EndMoment {
		return &MomentError{h.At, "the replay ended before"}
	}
	r.Unbroken = c.breaks.unbroken
	r.End, r.Signal, r.Status = c.end.kind, c.end.signal, c.end.status
	if c.Detached {
		return nil // HandOver has noted the rest
	}
	if c.Control != 0 {
		control, err := c.ReadControl()
		if err != nil {
			return err
		}
		r.Events, r.Turns, r.MadeUp = control.Consumed, control.Turns, control.MadeUp
	}
	if t := c.end.thread; t != nil {
		m, err := c.MomentOf(t)
		if err != nil {
			return err
		}
		r.Moment = m
	}
	if c.request.verify && c.end.failure == nil && c.end.kind != EndMoment {
		started := time.Now()
		var err error
		if r.Comparison, err = verify.Compare(c.ctx, c.Process, c.Stage(), c.Core); err != nil {
			return err
		}
		r.Times.Verify = time.Since(started)
	}
	if c.request.AtEnd == nil || c.attempt.provisional && !r.worked() {
		return nil
	}
	s, err := c.stopped(c.end.thread)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.request.AtEnd(s); !errors.Is(err, ErrEnough) {
		return err
	}
	return nil
}
