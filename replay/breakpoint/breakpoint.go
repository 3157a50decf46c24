package breakpoint

import (
	"errors"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Breakpoints stops threads at places that no event names. It finds a place of the log by a probe
// or by a debug register of the thread, and a moment by another debug register. The recording
// identifies a place by the thread's state. Equal states continue equally, so the first stop with
// the recorded state is the place.
type Breakpoints struct {
	process    *tracee.Process
	recordings *recorded.Recordings
	// inlined runs code of ours in the text, too; nil: nothing does.
	inlined *inline.Inlined
	// giveWay removes what else would be in a window.
	giveWay func(*patch.Window) error
	threads map[int]*broken
	// placedAt are the pcs of placed signals: a handler may return to them.
	placedAt map[placedPC]bool
	// everywhere are instructions at which every thread stops.
	everywhere []uint64
	// lifted: no probe is in the text (steps).
	lifted bool
}

// broken has the breakpoints of a thread.
type broken struct {
	place *place // nil: none
	// event is the address in the image of the event that the place is of; 0: it is the thread's last place.
	event uint64
	// moment is the pc of breakAt, 0 if there is none; left is the number of arrivals still to
	// come.
	moment, left uint64
	point        point
	resume       []uint64 // where the thread is stepped again
	registers    int      // the number used for breakpoints, not watches
	lifted       bool     // the thread is stepped, so its place needs a register
}

type placedPC struct {
	thread uint32
	pc     uint64
}

func New(p *tracee.Process, r *recorded.Recordings, giveWay func(*patch.Window) error) *Breakpoints {
	return &Breakpoints{process: p, recordings: r, giveWay: giveWay, threads: map[int]*broken{}, placedAt: map[placedPC]bool{}}
}

// UseInlined says what else runs code in the program's text.
func (b *Breakpoints) UseInlined(in *inline.Inlined) { b.inlined = in }

func (b *Breakpoints) of(t *tracee.Thread) *broken {
	x := b.threads[t.TID]
	if x == nil {
		x = &broken{}
		b.threads[t.TID] = x
	}
	return x
}

// Arm is for DG_TRAP_ARM: the thread's next event, at this address of the image, is a preemption or
// a signal that arrived between two events.
func (b *Breakpoints) Arm(t *tracee.Thread, event uint64) error {
	e, err := b.recordings.Stage().EventAt(event)
	if err != nil {
		return err
	}
	if e.Kind == eventlog.KindPoint && (len(e.Args) == 0 || e.Args[0] != agent.PointState) {
		return b.armPoint(t, e)
	}
	find := signalPlace
	if e.Kind == eventlog.KindPoint {
		find = turnPlace
	}
	p, err := find(ownText{b}, e)
	if err != nil {
		return err
	}
	b.of(t).event = event
	return b.await(t, p)
}

// await makes trap stop the thread at the place.
func (b *Breakpoints) await(t *tracee.Thread, p *place) error {
	x := b.of(t)
	if old := x.place; old != nil && old.probe != nil {
		if err := old.probe.remove(t); err != nil {
			return err
		}
	}
	x.place = nil
	if err := b.demoteProbes(t, p.pc); err != nil {
		return err
	}
	var err error
	if p.generated, err = b.isGenerated(p.pc); err != nil {
		return err
	}
	if p.generated {
		p.retry = true // the code may not be there yet
	} else if p.ignoreFlags(b.process.Memory); repeatedLength(b.process.Memory, p.pc) == 0 {
		if p.probe, err = b.setProbe(t, p); err != nil && !errors.Is(err, patch.ErrImpossible) {
			return err
		}
		p.retry = err != nil
	}
	x.place = p
	if p.probe == nil {
		if err := b.expose(p.pc); err != nil {
			return err
		}
	}
	return b.set(t.TID)
}

// expose makes a pc visible to a debug register.
func (b *Breakpoints) expose(pc uint64) error {
	if in := b.inlined; in != nil {
		return in.Expose(pc)
	}
	return nil
}

// Last is for DG_TRAP_LAST: the thread has done its last event and continues to its pc in the core.
// Holds: it is there already. If the core has it outside of the engine, or
// preempted at a point of its code, it ends at that place.
func (b *Breakpoints) Last(t *tracee.Thread) (Move, error) {
	if b.recordings.Core == nil || !b.recordings.IsLast() {
		return Move{}, nil
	}
	end := b.recordings.RecordedThreads()[t.Index]
	if end == nil || end.Raw.Inside != 0 && !end.Preempted() || end.Clones() || end.Failed && b.recordings.FaultOutcome() {
		return Move{}, nil // it stops by itself
	}
	p := finalPlace(b.process, b.recordings.Core, end)
	if control, err := b.process.ReadControl(); err != nil {
		return Move{}, err
	} else if p == nil || p.pc >= control.TextLow && p.pc < control.TextHigh {
		return Move{}, nil
	}
	b.of(t).event = 0
	return Move{}, b.await(t, p)
}

// First does the same as last for a thread without any event, before it runs.
func (b *Breakpoints) First(t *tracee.Thread, end *recorded.Thread, regs *ptrace.Registers) (Move, error) {
	p := finalPlace(b.process, b.recordings.Core, end)
	if p == nil {
		return Move{}, nil
	}
	if p.equal(regs, nil) {
		if same, err := p.matches(t); err != nil {
			return Move{}, err
		} else if same {
			return Move{Kind: Holds}, nil
		}
	}
	b.of(t).event = 0
	return Move{}, b.await(t, p)
}

// BreakAt makes trap return Arrived when the thread is at pc for the count-th time from now on.
// pc 0 cancels that.
func (b *Breakpoints) BreakAt(t *tracee.Thread, pc evidence.Addr, count uint64) error {
	x := b.of(t)
	if err := b.demote(t, uint64(pc)); err != nil {
		return err
	}
	x.moment, x.left = uint64(pc), count
	return b.set(t.TID)
}

// StopEverywhere makes every thread stop at the pcs, and no longer at those of earlier calls. A thread that starts later
// does so after SetThread. Trap reports these stops as Foreign, or as those of another breakpoint at the pc. The process
// uses traps (tracee.Process.UseTraps).
func (b *Breakpoints) StopEverywhere(pcs []uint64) error {
	b.everywhere = pcs
	for _, t := range b.process.Threads {
		for _, pc := range pcs {
			if err := b.demote(t, pc); err != nil {
				return err
			}
		}
		if err := b.SetThread(t); err != nil {
			return err
		}
	}
	return nil
}

// SetThread sets the breakpoints of a thread.
func (b *Breakpoints) SetThread(t *tracee.Thread) error {
	b.of(t)
	return b.set(t.TID)
}

// set makes the breakpoints of a stopped thread the process's.
func (b *Breakpoints) set(tid int) error {
	x := b.threads[tid]
	var pcs []uint64
	switch p := x.place; {
	case p == nil || p.probe != nil && !x.lifted:
	case p.rest != 0:
		pcs = append(pcs, p.rest)
	default:
		pcs = append(pcs, p.pc)
	}
	if x.moment != 0 {
		pcs = append(pcs, x.moment)
	}
	for _, pc := range x.resume {
		if pc != x.moment && pc != x.point.pc {
			pcs = append(pcs, pc)
		}
	}
	if x.point.pc != 0 && x.point.pc != x.moment {
		pcs = append(pcs, x.point.pc)
	}
	x.registers = len(pcs)
	pcs = append(pcs, b.everywhere...)
	return b.process.SetBreakpoints(tid, pcs...)
}

// UsesRegister reports whether a debug register of the thread is used.
func (b *Breakpoints) UsesRegister(t *tracee.Thread) bool {
	x := b.threads[t.TID]
	return x != nil && x.registers > 0
}

// HandleTrap is called at a SIGTRAP that is not from the engine.
func (b *Breakpoints) HandleTrap(t *tracee.Thread, regs *ptrace.Registers) (Move, error) {
	x := b.threads[t.TID]
	if x == nil {
		return Move{Kind: Foreign}, nil
	}
	p := x.place
	if p != nil && p.probe != nil && regs.Rip == p.probe.hit {
		return b.probed(t, x, regs)
	}
	here := p != nil && (p.probe == nil || x.lifted) && (p.rest == 0 && regs.Rip == p.pc || p.rest != 0 && regs.Rip == p.rest)
	preempts := x.point.pc != 0 && regs.Rip == x.point.pc
	if preempts {
		if x.point.left--; x.point.left == 0 {
			return b.reachedPoint(t, x, regs)
		}
	}
	if x.moment != 0 && regs.Rip == x.moment {
		if x.left--; x.left == 0 {
			// The kernel has set RF, with which the thread would also pass the other breakpoint at
			// this pc.
			if here {
				again := *regs
				again.Eflags &^= ptrace.FlagResume
				if err := ptrace.SetRegisters(t.TID, &again); err != nil {
					return Move{}, err
				}
			}
			return Move{Kind: Arrived}, nil
		}
		if !here {
			return Move{}, nil
		}
	}
	if !here && preempts {
		return Move{}, nil
	}
	if !here {
		return Move{Kind: Foreign}, nil
	}
	if p.probe != nil {
		return b.reachedLifted(t, x, regs)
	}
	if p.rest != 0 {
		return b.rested(t, x, regs)
	}
	return b.reached(t, x, regs)
}

// probed handles a thread that a probe has stopped.
func (b *Breakpoints) probed(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	p := x.place
	at, err := p.probe.registersAtPlace(regs)
	if err != nil {
		return Move{}, err
	}
	if !p.equal(&at, nil) {
		return Move{}, nil
	}
	if same, err := p.matches(t); err != nil {
		return Move{}, err
	} else if !same {
		return Move{}, p.probe.compareMore(t, p, ownText{b}, regs)
	}
	if err := ptrace.SetRegisters(t.TID, &at); err != nil {
		return Move{}, err
	}
	if err := p.probe.remove(t); err != nil {
		return Move{}, err
	}
	p.probe, *regs = nil, at
	return b.arrive(t, x, regs)
}

// reached handles a thread at the pc of its place.
func (b *Breakpoints) reached(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	p := x.place
	if p.equal(regs, nil) {
		if same, err := p.matches(t); err != nil {
			return Move{}, err
		} else if same {
			return b.arrive(t, x, regs)
		}
	} else if p.equal(regs, repeated) {
		if length := repeatedLength(b.process.Memory, p.pc); length != 0 && regs.Rcx > p.registers[contextRCX] {
			return b.repeat(t, x, regs, length)
		}
	}
	return Move{}, b.retryProbe(t, x, regs)
}

// retryProbe tries again to install a probe, for a thread that is at pc. The thread continues
// after the comparison, so it may come from inside of the window.
func (b *Breakpoints) retryProbe(t *tracee.Thread, x *broken, regs *ptrace.Registers) error {
	p := x.place
	if !p.retry || b.lifted || repeatedLength(b.process.Memory, p.pc) != 0 {
		return nil
	}
	p.retry = false
	probe, err := b.setProbe(t, p)
	if errors.Is(err, patch.ErrImpossible) {
		return nil
	} else if err != nil {
		return err
	}
	p.probe = probe
	if err := probe.enter(t, regs); err != nil {
		return err
	}
	return b.set(t.TID)
}

func (b *Breakpoints) arrive(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	p := x.place
	if p.unread {
		regs.Eflags = regs.Eflags&^patch.ResultFlags | p.results
		if err := ptrace.SetRegisters(t.TID, regs); err != nil {
			return Move{}, err
		}
	}
	x.place = nil
	if err := b.set(t.TID); err != nil {
		return Move{}, err
	}
	if p.preempts {
		// The next place may be the same: the thread has executed nothing then.
		regs.Eflags &^= ptrace.FlagResume
		return Move{Kind: Preempts}, nil
	}
	if p.signal == 0 {
		return Move{Kind: Holds}, nil
	}
	// The handler returns to this pc.
	if err := b.expose(p.pc); err != nil {
		return Move{}, err
	}
	b.placedAt[placedPC{t.Index, p.pc}] = true
	return Move{Signal: p.signal, Info: &p.info}, nil
}

// repeat executes the repetitions that the instruction had done when the signal arrived: all that
// are left now but those left at the place.
func (b *Breakpoints) repeat(t *tracee.Thread, x *broken, regs *ptrace.Registers, length int) (Move, error) {
	p := x.place
	p.rest = p.pc + uint64(length)
	if err := b.expose(p.rest); err != nil {
		return Move{}, err
	}
	part := *regs
	part.Rcx -= p.registers[contextRCX]
	if err := ptrace.SetRegisters(t.TID, &part); err != nil {
		return Move{}, err
	}
	return Move{}, b.set(t.TID)
}

// rested handles a thread after the instruction has done these repetitions. The thread is moved
// back to it with the others left to do.
func (b *Breakpoints) rested(t *tracee.Thread, x *broken, regs *ptrace.Registers) (Move, error) {
	p := x.place
	p.rest = 0
	back := *regs
	back.Rcx += p.registers[contextRCX]
	ended := regs.Rcx != 0 // scas or cmps found what ends it
	if !ended {
		back.Rip = p.pc
	}
	if err := ptrace.SetRegisters(t.TID, &back); err != nil {
		return Move{}, err
	}
	if err := b.set(t.TID); err != nil {
		return Move{}, err
	}
	if ended || !p.equal(&back, []int{contextFlags}) {
		return Move{}, nil
	}
	if same, err := p.matches(t); err != nil || !same {
		return Move{}, err
	}
	*regs = back
	return b.arrive(t, x, regs)
}
