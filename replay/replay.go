package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// Options of a replay. The zero value replays to the recorded end, in silence.
type Options struct {
	// Verify compares the process at its end with the recording's core.
	Verify bool
	// Echo, if set, gets what the program writes to descriptors 1 and 2.
	Echo *os.File
	// Schedule is the order of events, of those that the recording has; nil is
	// the recorded one. Only the events that it has are replayed.
	Schedule record.Schedule
	// Preemptions are what the process does beside that order; nil: what a search
	// found and wrote into the recording.
	Preemptions []record.Preemption
	// Hooks are called at Moments.
	Hooks []Hook
	// AtEnd is called at the end, or where the replay stopped short of it,
	// before the process is ended.
	AtEnd func(*Stopped) error
	// Sleeping and Computing are how long there may be no event while all
	// threads sleep, and while one computes: 10 seconds, and a minute more than
	// five times what the recorded process computed in all. A thread that is found to
	// turn in a loop without an end is not waited for so long.
	Sleeping, Computing time.Duration
	// Timing says when code between two events of a thread runs. Programs whose
	// threads look at variables that no event orders (flags, counts) may need
	// another than others. Empty: what comes to the recorded end; the process may
	// be run twice for that, and a Timing that is not the usual one is written
	// into the recording.
	Timing record.Timing
	// Watches are traced by Backend (empty: the best that works here). OnHit is
	// called for each hit in order, Inspect at those hits by their number with all
	// threads stopped; an error ends the replay.
	Watches []Watch
	Backend Backend
	// Probes are the instructions whose accesses BackendProbe sees.
	// MostStops is how often it may stop for those that cannot be seen without;
	// then the error is a *StopsError. 0: as often as need be.
	Probes    []evidence.Addr
	MostStops uint64
	// Locks are looked at at each hit.
	Locks   []LockWord
	OnHit   func(*Hit) error
	Inspect map[uint64]func(*Hit, *Stopped) error
	// Free lets the process go on where it leaves the recorded way: events that
	// the log does not have are made up from it, in a fixed order of the threads.
	// Edits are what is changed to make it leave.
	// Breaks are instructions at which something is looked at, or changed as by an edit.
	Free   bool
	Edits  []Edit
	Breaks []Break
	// Step executes parts of the replay one instruction at a time.
	Step *Stepping
	// Walk goes along one call of a function.
	Walk *Walk
	// Image says how the files of the process are found.
	Image image.Options
	// Unnamed leaves addresses in errors without names, and threads without stacks: names
	// take longer than many a replay.
	Unnamed bool
	// Progress, if set, is told now and then how far the replay is.
	Progress func(done, total uint64)
}

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
	walk *Walk
}

// ErrEnough is returned by a Hook to end the replay at that point.
var ErrEnough = errors.New("replay: stopped on request")

// EndKind is how a replay ended.
type EndKind string

// The ends of a replay.
const (
	EndFailure  EndKind = "failure"  // to the recorded signal
	EndExit     EndKind = "exit"     // to the recorded end of the process
	EndExec     EndKind = "exec"     // to where the process executed another program
	EndLog      EndKind = "log"      // to the last event of a recording that was cut off
	EndFault    EndKind = "fault"    // to an instruction that failed behind the last event of one
	EndMoment   EndKind = "moment"   // to a Moment, where a Hook ended it
	EndDiverged EndKind = "diverged" // it left the recorded way
	EndStuck    EndKind = "stuck"    // it made no progress
	EndIdle     EndKind = "idle"     // a free one: all threads wait for input that the recording does not have
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
	// Timing is the timing used. If none worked, Tried lists those tried, and Timing is the one
	// that got furthest.
	Timing record.Timing
	Tried  []record.Timing
	// Comparison with the recorded end; nil if none was asked for or the replay
	// did not come to the end.
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

// InputError says that the recording cannot be replayed on this machine: it is damaged, or files
// of the program changed.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputf(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...)}
}

// Run replays a recording. If the replay diverges from the recording or gets stuck, the error is a
// *DivergenceError or a *StuckError, and the result is not nil.
//
// Replays share nothing; several may run at once.
func Run(ctx context.Context, rec *record.Recording, opts Options) (*Result, error) {
	if opts.Free {
		return runFree(ctx, rec, opts)
	}
	if len(opts.Edits) > 0 || len(opts.Breaks) > 0 {
		return nil, inputf("replay: what is edited leaves the recorded way, which it may not here")
	}
	if opts.Timing == "" {
		return runAuto(ctx, rec, opts)
	}
	a := &attempt{timing: opts.Timing}
	a.run(ctx, rec, opts)
	return a.result, a.err
}

// prepare does the work that needs no process.
func (c *controller) prepare() error {
	if err := c.opts.checkWatches(); err != nil {
		return err
	}
	if c.rec.Live() {
		return inputf("replay: %s is still being recorded; it can be replayed when its process has ended", c.rec.Dir)
	}
	var err error
	if c.stages, err = openStages(c.rec); err != nil {
		return err
	}
	path, err := c.rec.Core()
	if err == nil {
		c.core, err = image.OpenCore(path, c.opts.Image)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return inputf("replay: the recording's core: %w", err)
	}
	if c.core == nil && c.opts.Verify {
		return withoutCore(c.rec)
	}
	for i, s := range c.stages {
		var core *image.Process
		var preemptions []record.Preemption
		if i == len(c.stages)-1 {
			core, s.schedule, preemptions = c.core, c.opts.Schedule, c.opts.Preemptions
		}
		if err := s.prepare(core, preemptions, c.attempt.timing); err != nil {
			return err
		}
		c.result.Limits = append(c.result.Limits, s.limits...)
	}
	last := c.stages[len(c.stages)-1]
	c.result.Total = last.events
	if f := c.attempt.free; f != nil {
		if err := f.prepare(last); err != nil {
			return err
		}
	}
	c.hooks, err = last.orderHooks(slices.Concat(c.stepHooks(), c.walkHook(), c.opts.Hooks))
	return err
}

// withoutCore returns the error for a recording that has no core to compare with.
func withoutCore(rec *record.Recording) error {
	if rec.Manifest.Outcome.Kind != record.OutcomeExec {
		return inputf("replay: %s has no core to compare with", rec.Dir)
	}
	for _, c := range rec.Manifest.Children {
		if c.Exec && c.PID == rec.Manifest.PID {
			return inputf("replay: %s ends where the process executed another program, and has no core to compare with; that program's recording is %s",
				rec.Dir, filepath.Join(rec.Dir, filepath.FromSlash(c.Path)))
		}
	}
	return inputf("replay: %s ends where the process executed another program, and has no core to compare with", rec.Dir)
}

// stage is the recording that is replayed now.
func (c *controller) stage() *stage { return c.stages[c.step] }

// last reports whether the recording that is replayed now is the one asked
// for, not an ancestor by fork.
func (c *controller) last() bool { return c.step == len(c.stages)-1 }

func (c *controller) close() {
	for _, s := range c.stages {
		s.close()
	}
	if c.core != nil {
		c.core.Close()
	}
}

// serve is the replay, on the tracing thread.
func (c *controller) serve() error {
	started := time.Now()
	defer c.kill()
	if err := c.start(); err != nil {
		return err
	}
	c.placer = newPlacer(c)
	if len(c.opts.Breaks) > 0 {
		c.breaks = newBreaks(c.opts.Breaks)
	}
	c.watch = startWatchdog(c)
	defer c.watch.stop()
	first := c.threads[c.pid]
	err := c.armWatches(first)
	defer c.stopTracing()
	if err == nil {
		err = c.cont(first, 0)
	}
	if err == nil {
		err = c.loop()
	}
	if err != nil {
		return err
	}
	c.watch.stop()
	if err := c.stopAll(); err != nil {
		return err
	}
	if err := c.removeBreaks(); err != nil {
		return err
	}
	c.result.Times.Run = time.Since(started)
	if err := c.finishTracing(); err != nil {
		return err
	}
	return c.finish()
}

// finish fills in the result from the stopped process at the end.
func (c *controller) finish() error {
	r := c.result
	c.finishSteps()
	for len(c.hooks) > 0 && (c.hooks[0].Every || c.hooks[0].step != nil) {
		c.hooks = c.hooks[1:]
	}
	if len(c.hooks) > 0 && c.end.failure == nil && c.end.kind != EndMoment {
		return &MomentError{c.hooks[0].At, "the replay came to its end before"}
	}
	r.End, r.Signal, r.Status = c.end.kind, c.end.signal, c.end.status
	if c.detached {
		return nil // HandOver has noted the rest
	}
	if c.control != 0 {
		control, err := c.readControl()
		if err != nil {
			return err
		}
		r.Events, r.MadeUp = control.Consumed, control.MadeUp
	}
	if t := c.end.thread; t != nil {
		m, err := c.momentOf(t)
		if err != nil {
			return err
		}
		r.Moment = m
	}
	if c.opts.Verify && c.end.failure == nil && c.end.kind != EndMoment {
		started := time.Now()
		var err error
		if r.Comparison, err = c.verify(); err != nil {
			return err
		}
		r.Times.Verify = time.Since(started)
	}
	if c.opts.AtEnd == nil || c.attempt.provisional && !r.worked() {
		return nil
	}
	s, err := c.stopped(c.end.thread)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.opts.AtEnd(s); !errors.Is(err, ErrEnough) {
		return err
	}
	return nil
}

// kill ends the process, and waits until it is gone.
func (c *controller) kill() {
	if c.detached || c.pid == 0 {
		return
	}
	unix.Kill(c.pid, unix.SIGKILL)
	for {
		stop, err := ptrace.Wait()
		if err != nil || stop.Kind == ptrace.Ended && stop.TID == c.pid {
			break
		}
	}
	if c.memory != nil {
		c.memory.Close()
	}
}

// momentOf is where a thread stands.
func (c *controller) momentOf(t *thread) (evidence.Moment, error) {
	if t.index == 0 {
		if err := c.identify(t); err != nil {
			return evidence.Moment{}, nil // before its first event
		}
	}
	r, err := c.rthread(t.index)
	if err != nil {
		return evidence.Moment{}, err
	}
	regs, err := c.programRegisters(t)
	if err != nil {
		return evidence.Moment{}, err
	}
	return evidence.Moment{Thread: t.index, Ordinal: r.Ordinal, PC: evidence.Addr(regs.Rip), Count: 1}, nil
}

// sortedThreads are the threads by their index.
func (c *controller) sortedThreads() []*thread {
	var list []*thread
	for _, t := range c.threads {
		c.identify(t) // one that has just begun stays without a number
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thread) int { return int(int64(a.index) - int64(b.index)) })
	return list
}
