package tracepoint

import (
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/breakpoint"
	"diagnose/replay/inline"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Replay is the replay whose process has the tracepoints.
type Replay interface {
	// Over reports whether the replay has ended.
	Over() bool
	// Arrived is called with a thread stopped before an instruction. regs are the program's.
	Arrived(t *tracee.Thread, regs *ptrace.Registers) error
	// Asked is Arrived for a thread that has not stopped, but waits for the answer. It resumes all that it has stopped.
	Asked(q *Question) error
	// Resume resumes the thread, and those that Arrived has stopped.
	Resume(t *tracee.Thread) error
	// HandleStop handles a stop that is not a tracepoint's.
	HandleStop(stop ptrace.Stop) error
	// Logged is called with the entries of rules, in their order, and Counted with how many arrivals of a thread the rule at an
	// instruction has handled. t is stopped right after the entry; nil: no thread is.
	Logged(e *Entry, t *tracee.Thread) error
	Counted(pc evidence.Addr, thread uint32, arrivals uint64)
	// Room is the number of entries after which a thread must stop.
	Room() uint64
}

// File is a file that is mapped so that its first byte is at Base, or would be. Path is without " (deleted)".
type File struct {
	Path string
	Base evidence.Addr
}

// Tracepoints are those of one process.
type Tracepoints struct {
	process *tracee.Process
	replay  Replay
	in      *inline.Inlined
	// waiting are the instructions whose objects are not loaded yet, in ascending order.
	waiting []uint64
	files   map[evidence.Addr]File
	// impossible are those where no thread can be stopped.
	impossible []evidence.Addr
	// moved and trapped count the instructions by how threads stop at them.
	moved, trapped int
	log            *processLog
	// numbers counts the numbered arrivals if there is no log.
	numbers uint64
}

// New returns the tracepoints at instructions of a process. Install puts them there, and if an instruction has a file only where
// that is mapped. At those with a rule, threads stop only where the rule says so. asks: at others they may ask (SetAnswers).
func New(p *tracee.Process, s *recorded.Stage, b *breakpoint.Breakpoints, r Replay, at []evidence.Addr, files map[evidence.Addr]File, rules map[evidence.Addr]*Rule, asks bool) *Tracepoints {
	x := &Tracepoints{process: p, replay: r, files: files}
	for _, pc := range at {
		x.waiting = append(x.waiting, uint64(pc))
	}
	slices.Sort(x.waiting)
	x.waiting = slices.Compact(x.waiting)
	x.log = newProcessLog(x.waiting, rules, asks)
	x.in = inline.New(p, s, x, b.Exposed)
	b.UseInlined(x.in)
	return x
}

// Install puts the tracepoints at instructions whose objects are loaded, or loaded again. The thread is in a request
// of the engine, so the others wait.
func (x *Tracepoints) Install(t *tracee.Thread) error {
	if x == nil {
		return nil
	}
	if err := x.in.Renew(); err != nil {
		return err
	}
	if len(x.waiting) == 0 && x.log.block == nil {
		return nil
	}
	if err := x.prepareLog(t); err != nil {
		return err
	}
	maps, err := tracee.ReadMaps(x.process.PID)
	if err != nil {
		return err
	}
	if err := x.log.listText(maps); err != nil {
		return err
	}
	var sites []*inline.Site
	x.waiting = slices.DeleteFunc(x.waiting, func(pc uint64) bool {
		m := maps.Containing(pc)
		if m == nil || m.Perms[2] != 'x' || m.Path == "" || !x.expected(pc, m) {
			return false
		}
		if inst := x.instruction(pc); inst != nil {
			sites = append(sites, &inline.Site{Inst: *inst})
		} else {
			x.impossible = append(x.impossible, evidence.Addr(pc))
		}
		return true
	})
	if _, err := x.in.Install(t, sites); err != nil {
		return err
	}
	for _, s := range sites {
		if s.Moved() {
			x.moved++
		} else {
			x.trapped++
		}
	}
	return nil
}

// expected reports whether a mapping is of the file that the instruction is of. Another object may be at its address first.
func (x *Tracepoints) expected(pc uint64, m *tracee.Mapping) bool {
	f, known := x.files[evidence.Addr(pc)]
	o := m.Object()
	return !known || f == File{Path: o.Path, Base: evidence.Addr(o.Base)}
}

// instruction returns the instruction at a pc; nil if no thread can be stopped there: there is none,
// it traps itself, or the recorder replaces it.
func (x *Tracepoints) instruction(pc uint64) *x86.Inst {
	inst := x.process.Instruction(pc)
	if inst == nil || inst.Flow == x86.FlowTrap || inst.Flow == x86.FlowSyscall || x.in.ReplacedByEngine(pc, uint64(inst.Len)) {
		return nil
	}
	return inst
}

// Add adds a tracepoint while a thread is stopped at another one. It reports whether that is
// possible.
func (x *Tracepoints) Add(pc evidence.Addr) (bool, error) {
	if x.in.Has(uint64(pc)) {
		return true, nil
	}
	inst := x.instruction(uint64(pc))
	if inst == nil {
		return false, nil
	}
	added, err := x.in.Add(&inline.Site{Inst: *inst})
	if added {
		x.trapped++
	}
	return true, err
}

// HandleSignal handles a signal of a thread in code of the tracepoints. done: nothing is left to do.
func (x *Tracepoints) HandleSignal(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	if x == nil {
		return false, nil
	}
	return x.in.HandleStop(t, s)
}

// Original changes the registers of a thread in the code of the tracepoints to those of the
// program.
func (x *Tracepoints) Original(regs *ptrace.Registers) {
	if x == nil {
		return
	}
	own := x.log.hide(regs)
	if !x.in.Original(regs) && own != nil {
		x.log.original(regs, own)
	}
}

// Shared implements inline.Code.
func (x *Tracepoints) Shared(a *inline.Assembler) error { return x.log.shared(a) }

// Inline implements inline.Code.
func (x *Tracepoints) Inline(a *inline.Assembler, s *inline.Site) error {
	if r := x.log.at(s.Inst.PC); r != nil {
		if done, err := x.log.inline(a, s, r); done || err != nil {
			return err
		}
	}
	a.Trap(s)
	return a.Program(&s.Inst)
}

// Trapped implements inline.Code.
func (x *Tracepoints) Trapped(t *tracee.Thread, s *tracee.SignalStop, site *inline.Site) error {
	if site == x.log.full || site == x.log.last {
		return x.drained(t, site)
	}
	if err := x.Drain(); err != nil || x.replay.Over() {
		return err
	}
	inPlace := x.in.ArenaAt(s.Regs.Rip) == nil
	regs := s.Regs
	regs.Rip, regs.Orig_rax = site.Inst.PC, ^uint64(0)
	if inPlace {
		if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
			return err
		}
	}
	seen := regs
	x.log.hide(&seen)
	if err := x.replay.Arrived(t, &seen); err != nil || x.replay.Over() {
		return err
	}
	x.log.makeRoom(x.replay)
	if !inPlace {
		return x.replay.Resume(t) // the instruction is next
	}
	stop, err := x.pass(t, site, &regs)
	if err != nil {
		return err
	}
	if stop != nil {
		return x.replay.HandleStop(*stop)
	}
	if err := x.in.ContinueInCopy(t, &regs); err != nil {
		return err
	}
	return x.replay.Resume(t)
}

// pass makes a thread execute the instruction under an int3, with all its repetitions. stop is any
// other stop that occurred.
func (x *Tracepoints) pass(t *tracee.Thread, site *inline.Site, regs *ptrace.Registers) (*ptrace.Stop, error) {
	if site.Inst.Repeats() {
		return x.in.RunOver(t, site, regs)
	}
	return x.in.StepOver(t, site, regs)
}

// Faulted implements inline.Code.
func (x *Tracepoints) Faulted(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	if !x.log.faulted(&s.Regs) {
		return false, nil
	}
	if err := ptrace.SetRegisters(t.TID, &s.Regs); err != nil {
		return false, err
	}
	return true, x.replay.Resume(t)
}

// Finish restores the program's text, with all threads stopped.
func (x *Tracepoints) Finish() error {
	if x == nil || x.process.Detached {
		return nil
	}
	if err := errors.Join(x.in.Remove(), x.log.forget(x.process)); err != nil {
		return fmt.Errorf("replay: tracepoints: %w", err)
	}
	return nil
}

// Installed counts the instructions that were moved and those that an int3 replaces. unseen are
// those where no thread could be stopped, or whose objects were never loaded.
func (x *Tracepoints) Installed() (moved, trapped int, unseen []evidence.Addr) {
	if x == nil {
		return 0, 0, nil
	}
	unseen = slices.Clone(x.impossible)
	for _, pc := range x.waiting {
		unseen = append(unseen, evidence.Addr(pc))
	}
	return x.moved, x.trapped, unseen
}
