package replay

import (
	"errors"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/step"
	"diagnose/replay/tracee"
)

// Debugging stops a replay where a debugger asks. Nothing that it does changes the program's state.
type Debugging struct {
	// Events are Moments without a PC where the process stops. The thread is still in the recording library: a step leads
	// to its first instruction of the program after the event.
	Events []evidence.Moment
	// Begin is in force from the program's start.
	Begin DebugPlan
	// OnStop is called at each stop, with all threads stopped, and says how the replay continues. ErrEnough ends
	// it; any other error ends it, too, and is returned.
	OnStop func(*DebugStop) (DebugPlan, error)
	// Interrupt makes the process stop soon; it may be used by any goroutine.
	Interrupt *Interruption
}

// Interruption asks a replay to stop.
type Interruption struct{ asked atomic.Bool }

// Ask asks for it. Several requests before the stop are one.
func (i *Interruption) Ask() { i.asked.Store(true) }

// Take withdraws the request, and reports whether there was one.
func (i *Interruption) Take() bool { return i.asked.Swap(false) }

func (i *Interruption) pending() bool { return i != nil && i.asked.Load() }

// DebugPlan says where the process stops next. It also stops at the next of Debugging.Events and at the end.
type DebugPlan struct {
	// Breakpoints are instructions before which every thread stops.
	Breakpoints []evidence.Addr
	// Watches are the words whose accesses stop the process, after the instruction; at most as many as there are
	// debug registers. An access in the recording library is reported where the thread leaves it.
	Watches []Watch
	// Step is the number of a thread that stops at the next instruction of the program that it arrives at; 0: none.
	// The recording library counts as a part of the instruction that enters it.
	Step uint32
	// Handler, if it is not 0, is the handler of a signal at whose event the stepped thread has stopped: the step leads to
	// its first instruction.
	Handler evidence.Addr
	// Counted are instructions at which arrivals are counted without a stop.
	Counted []evidence.Addr
	// Until, if its PC is not 0, also stops the process.
	Until Arrivals
}

// Arrivals are those of a thread (0: of all threads) at an instruction. The Count-th is the one that is meant, from 1.
type Arrivals struct {
	Thread uint32
	PC     evidence.Addr
	Count  uint64
}

func (a *Arrivals) isOf(thread uint32, pc uint64) bool {
	return a.PC != 0 && uint64(a.PC) == pc && (a.Thread == 0 || a.Thread == thread)
}

// StopKind is why the process stopped for a debugger.
type StopKind uint8

// The reasons.
const (
	StopEvent      StopKind = iota // at one of Debugging.Events
	StopBreakpoint                 // before an instruction of the plan
	StopUntil                      // DebugPlan.Until
	StopStep                       // the step is done
	StopWatch                      // a watched word was accessed
	StopInterrupt                  // Interruption
	StopTally                      // DebugStop.Tally
	StopEnd                        // the end of the replay
	stopPassed                     // of a thread that has passed a breakpoint; it continues
)

// DebugStop is a stop for a debugger.
type DebugStop struct {
	*Stopped
	Kind StopKind
	// Watch is the index of the watch in the plan.
	Watch int
	// Left is the number of arrivals of DebugPlan.Until still to come.
	Left uint64
	// Arrivals is the number of the thread's arrivals at its PC, this one included, since its last event or since the PC
	// was set in a plan: Since says which.
	Arrivals   uint64
	SinceEvent bool
	// Tallies are the arrivals of the last Tally, in its order; nil: they are not known.
	Tallies []uint64
	// End is how the replay ended, for StopEnd.
	End EndKind
}

// debugging is the part of the controller for a DebugRequest.
type debugging struct {
	c     *controller
	asked *Debugging
	plan  DebugPlan
	// stepped is the thread that is stepped, for the reason why; nil: none.
	stepped *tracee.Thread
	why     StopKind
	// told: the stepped thread is at an instruction of the program.
	told  bool
	watch int
	// stopped is why the process has stopped last.
	stopped StopKind
	left    uint64 // of plan.Until
	// counts are the arrivals at the plan's instructions since each thread's last event.
	counts map[uint32]*arrivalCounts
	// present: the stopped thread's arrival has been counted.
	present bool
	// armed are the threads' ordinals when a breakpoint was set. Arrivals since an event are known if
	// it came later.
	armed map[uint64]map[uint32]uint64
	// tallies count at full speed; nil: there are none.
	tallies *tallies
}

func newDebugging(c *controller, asked *Debugging) *debugging {
	return &debugging{c: c, asked: asked, counts: map[uint32]*arrivalCounts{}, armed: map[uint64]map[uint32]uint64{}}
}

func (d *debugging) newStepper() *step.Stepper {
	return step.New(&step.Stepping{Each: d.each}, d.c.Process, d.c.placer)
}

// begin is called when the engine starts in a process.
func (d *debugging) begin() error {
	if d == nil || !d.c.IsLast() {
		return nil
	}
	return d.adopt(d.asked.Begin)
}

// newThread is called before a thread's first instruction.
func (d *debugging) newThread(t *tracee.Thread) error {
	if d == nil || d.c.Control == 0 {
		return nil
	}
	return errors.Join(d.c.placer.SetThread(t), d.armWatches(t))
}

// adopt makes a plan the current one.
func (d *debugging) adopt(plan DebugPlan) error {
	watches := !slices.Equal(plan.Watches, d.plan.Watches)
	old := d.instructions()
	d.plan, d.left = plan, max(plan.Until.Count, 1)
	if err := d.setBreakpoints(old); err != nil || !watches {
		return err
	}
	d.c.WatchRegisters = tracee.NewWatchRegisters(plan.Watches)
	for _, t := range d.c.Threads {
		if err := d.c.WatchRegisters.ArmWatches(t.TID); err != nil {
			return err
		}
	}
	return nil
}

// instructions are those where threads stop by the plan, in ascending order.
func (d *debugging) instructions() []uint64 {
	var pcs []uint64
	for _, pc := range d.plan.Breakpoints {
		pcs = append(pcs, uint64(pc))
	}
	for _, pc := range d.plan.Counted {
		pcs = append(pcs, uint64(pc))
	}
	if pc := d.plan.Until.PC; pc != 0 {
		pcs = append(pcs, uint64(pc))
	}
	slices.Sort(pcs)
	return slices.Compact(pcs)
}

func (d *debugging) setBreakpoints(old []uint64) error {
	pcs := d.instructions()
	if slices.Equal(pcs, old) {
		return nil
	}
	ordinals := map[uint32]uint64{}
	for _, t := range d.c.SortedThreads() {
		if r, err := d.c.ReadThread(t.Index); err == nil && t.Index != 0 {
			ordinals[t.Index] = r.Ordinal
		}
	}
	armed := map[uint64]map[uint32]uint64{}
	for _, pc := range pcs {
		if armed[pc] = d.armed[pc]; armed[pc] == nil {
			armed[pc] = ordinals
			d.forget(pc)
		}
	}
	d.armed = armed
	return d.c.placer.StopEverywhere(pcs)
}

func (d *debugging) forget(pc uint64) {
	for _, n := range d.counts {
		delete(n.at, pc)
	}
}

func (d *debugging) armWatches(t *tracee.Thread) error {
	if len(d.plan.Watches) == 0 {
		return nil
	}
	return d.c.WatchRegisters.ArmWatches(t.TID)
}

// atEvent handles a thread that has done an event where the process is to stop, and asks the engine's question on it.
func (d *debugging) atEvent(t *tracee.Thread, s *tracee.SignalStop) error {
	answered := s.Regs
	answered.Rax, answered.Orig_rax = 1, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &answered); err != nil {
		return err
	}
	return d.stop(t, StopEvent)
}

// follow steps a thread to the next instruction of the program that it arrives at.
func (d *debugging) follow(t *tracee.Thread, why StopKind) error {
	return d.followInto(t, why, 0)
}

// followInto is follow; handler, if it is not 0, is that of a signal that the thread gets.
func (d *debugging) followInto(t *tracee.Thread, why StopKind, handler evidence.Addr) error {
	d.stepped, d.why, d.told = t, why, false
	return d.c.stepper.Follow(t, uint64(handler))
}

func (d *debugging) each(x *Executed) {
	if x.Again {
		return
	}
	d.told = true
	d.count(x.Thread, x.Ordinal, x.PC)
}

// count notes an arrival at an instruction of the plan.
func (d *debugging) count(thread uint32, ordinal, pc uint64) {
	d.present = true
	if d.armed[pc] == nil {
		return
	}
	n := d.counts[thread]
	if n == nil || n.ordinal != ordinal {
		n = &arrivalCounts{ordinal: ordinal, at: map[uint64]uint64{}}
		d.counts[thread] = n
	}
	n.at[pc]++
	if d.plan.Until.isOf(thread, pc) && d.left > 0 {
		d.left--
	}
}

// counted returns how often a thread has arrived at its instruction, and whether all arrivals since its last event
// are known.
func (d *debugging) counted(m evidence.Moment) (arrivals uint64, sinceEvent bool) {
	armed := d.armed[uint64(m.PC)]
	if armed == nil {
		return 0, false
	}
	if !d.present {
		d.count(m.Thread, m.Ordinal, uint64(m.PC))
	}
	before, existed := armed[m.Thread]
	if n := d.counts[m.Thread]; n != nil && n.ordinal == m.Ordinal {
		arrivals = n.at[uint64(m.PC)]
	}
	return arrivals, !existed || m.Ordinal > before
}

// stepEnded handles the arrival of a thread that is stepped at an instruction. done: it was stepped, and the stop has been
// handled.
func (d *debugging) stepEnded(t *tracee.Thread, pc uint64) (done bool, err error) {
	if d == nil || !d.told || t != d.stepped {
		return false, nil
	}
	if d.why != stopPassed {
		return true, d.stop(t, d.why)
	}
	if kind, stops := d.stopsAt(t, pc); stops {
		return true, d.stop(t, kind)
	}
	if err := d.endStep(); err != nil {
		return true, err
	}
	return true, d.resume(t)
}

// endStep ends the stepping of a thread.
func (d *debugging) endStep() error {
	x := d.stepped
	d.stepped, d.why, d.told = nil, StopStep, false
	if x == nil {
		return nil
	}
	if err := d.c.stepper.Leave(x); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// stopsAt reports whether the process stops for a thread that has arrived at an instruction.
func (d *debugging) stopsAt(t *tracee.Thread, pc uint64) (StopKind, bool) {
	if d.left == 0 && d.plan.Until.isOf(t.Index, pc) {
		return StopUntil, true
	}
	return StopBreakpoint, slices.Contains(d.plan.Breakpoints, evidence.Addr(pc))
}

// arrived handles a stop of a thread before an instruction that may be one of the plan's. stepped: it is one where
// a thread that is stepped continues. done: the stop has been handled.
func (d *debugging) arrived(t *tracee.Thread, pc uint64, stepped bool) (done bool, err error) {
	if d == nil || d.c.Control == 0 {
		return false, nil
	}
	if stepped {
		if done, err := d.stepEnded(t, pc); done || err != nil {
			return done, err
		}
	}
	if d.armed[pc] == nil {
		return false, nil
	}
	if err := d.c.Identify(t); errors.Is(err, tracee.ErrNoThread) {
		return true, d.c.resume(t) // it is no part of the recorded program yet
	} else if err != nil {
		return false, err
	}
	r, err := d.c.ReadThread(t.Index)
	if err != nil {
		return false, err
	}
	d.c.watch.hits.Add(1)
	d.count(t.Index, r.Ordinal, pc)
	if kind, stops := d.stopsAt(t, pc); stops {
		return true, d.stop(t, kind)
	}
	return true, d.resume(t)
}

// resume resumes a thread that has stopped before an instruction of the plan.
func (d *debugging) resume(t *tracee.Thread) error {
	d.present = false
	if err := d.passTrap(t); err != nil {
		return err
	}
	if err := d.passWatched(t); err != nil {
		return err
	}
	return d.c.resume(t)
}

// passWatched steps a thread over the breakpoint at its pc as passStepped does.
func (d *debugging) passWatched(t *tracee.Thread) error {
	if !d.watches() {
		return nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || d.armed[regs.Rip] == nil {
		return err
	}
	return d.passStepped(t)
}

// passStepped steps a thread over the instruction at which it has stopped if there are watches: the access of an
// instruction that is passed at full speed would not be seen.
func (d *debugging) passStepped(t *tracee.Thread) error {
	if !d.watches() || d.stepped != nil || t.Final != nil {
		return nil
	}
	return d.follow(t, stopPassed)
}

func (d *debugging) watches() bool { return d != nil && len(d.plan.Watches) > 0 }

// watchTrap handles a SIGTRAP that may be an access to a watched word. done: the thread has been resumed.
func (d *debugging) watchTrap(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	if !d.watches() || s.Code == tracee.TrapHandler {
		return false, nil
	}
	status, err := ptrace.GetDebug(t.TID, 6)
	if err != nil {
		return false, err
	}
	hit := -1
	for i := range d.plan.Watches {
		if status&(1<<tracee.RegisterOf(i)) != 0 {
			hit = i
		}
	}
	if hit < 0 {
		return false, nil
	}
	if err := ptrace.SetDebug(t.TID, 6, 0); err != nil {
		return false, err
	}
	d.c.watch.hits.Add(1)
	d.watch = hit
	if d.c.stepper.Steps(t) {
		d.why = StopWatch
		return false, nil
	}
	if err := d.c.Identify(t); err != nil {
		return true, d.c.cont(t, 0)
	}
	if inside, err := d.c.InLibrary(s.Regs.Rip); err != nil {
		return false, err
	} else if !inside {
		return true, d.stop(t, StopWatch)
	}
	if err := d.follow(t, StopWatch); err != nil {
		return false, err
	}
	return true, d.c.cont(t, 0)
}

// interrupts reports whether a SIGSTOP of a thread is for an interruption. A step is done in a moment, but in a copy another thread for which it
// waits may run for any time.
func (d *debugging) interrupts(t *tracee.Thread) bool {
	return d != nil && d.asked.Interrupt != nil && (d.stepped == nil || d.c.free() && d.stepped != t) && d.asked.Interrupt.Take()
}

// interrupted stops the thread that was running. One in the recording library leaves it first.
func (d *debugging) interrupted(t *tracee.Thread) error {
	if err := d.endStep(); err != nil {
		return err
	}
	if err := d.c.Identify(t); err != nil {
		return d.c.cont(t, 0)
	}
	r, err := d.c.ReadThread(t.Index)
	if err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	inside, err := d.c.InLibrary(regs.Rip)
	if err != nil {
		return err
	}
	if r.Inside == 0 && !inside {
		return d.stop(t, StopInterrupt)
	}
	if err := d.follow(t, StopInterrupt); err != nil {
		return err
	}
	return d.c.cont(t, 0)
}

// stop stops the process for the debugger, and lets it continue as the answer says.
func (d *debugging) stop(t *tracee.Thread, kind StopKind) error {
	c := d.c
	if err := errors.Join(d.endStep(), c.StopAll()); err != nil {
		return err
	}
	c.watch.pause()
	defer c.watch.resume()
	tallies, err := d.takeTallies(t)
	if err != nil {
		return err
	}
	plan, err := d.ask(t, kind, tallies)
	if errors.Is(err, ErrEnough) {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.proceed(t, plan); err != nil {
		return err
	}
	c.watch.resume()
	return c.goOn()
}

// proceed prepares the threads to continue from a stop of one of them by a plan.
func (d *debugging) proceed(t *tracee.Thread, plan DebugPlan) error {
	d.present = false
	if err := errors.Join(d.adopt(plan), d.passTrap(t)); err != nil {
		return err
	}
	if x := d.c.ThreadNumbered(plan.Step); x != nil {
		return d.followInto(x, StopStep, plan.Handler)
	}
	return d.passWatched(t)
}

func (d *debugging) ask(t *tracee.Thread, kind StopKind, tallies []uint64) (DebugPlan, error) {
	s, err := d.c.stopped(t)
	if err != nil {
		return DebugPlan{}, err
	}
	defer s.close()
	d.c.attempt.hooked, d.stopped = true, kind
	x := &DebugStop{Stopped: s, Kind: kind, Watch: d.watch, Tallies: tallies}
	x.Arrivals, x.SinceEvent = d.counted(s.Moment)
	x.Left = d.left
	return d.asked.OnStop(x)
}

// passTrap lets a thread pass the breakpoint at its pc, where it has stopped.
func (d *debugging) passTrap(t *tracee.Thread) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || regs.Eflags&ptrace.FlagResume != 0 || t.Final != nil {
		return err
	}
	regs.Eflags |= ptrace.FlagResume
	return ptrace.SetRegisters(t.TID, &regs)
}

// atEnd is called at the end of the replay. The answer has no effect.
func (d *Debugging) atEnd(s *Stopped) error {
	x := &DebugStop{Stopped: s, Kind: StopEnd}
	if s.c.end != nil {
		x.End = s.c.end.kind
	}
	if x.End == EndMoment {
		return nil
	}
	if d := s.c.debugging; d.armed[uint64(s.Moment.PC)] != nil {
		d.present = true
		x.Arrivals, x.SinceEvent = d.counted(s.Moment)
	}
	var err error
	if x.Tallies, err = s.c.debugging.tallies.counts(); err != nil {
		return err
	}
	_, err = d.OnStop(x)
	return err
}
