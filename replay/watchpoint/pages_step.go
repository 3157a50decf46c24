package watchpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Of the instructions after one that has accessed a page, those that follow closely are likely to
// access it, too. To step an instruction costs about a quarter of what an access costs, so the
// thread is stepped until mostQuiet instructions have accessed no page. mostStepped bounds the
// number of steps without a look at the other threads.
const (
	mostQuiet   = 3
	mostStepped = 4096
)

// mostRepeated bounds how often in a row instructions are repeated that faulted at a page which is
// not protected any more.
const mostRepeated = 1000

// handle handles a signal of a thread. done: it was an access to a protected page, and nothing is
// left to do.
func (p *pages) handle(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	x := p.faulted(s)
	if x == nil {
		return p.entered(t, s)
	}
	p.worked()
	if p.tr.Counts.Stops++; p.tr.asked.MostStops > 0 && p.tr.Counts.Stops > p.tr.asked.MostStops {
		return true, &StopsError{p.tr.asked.MostStops}
	}
	if !x.covered {
		if p.repeated++; p.repeated > mostRepeated {
			return false, nil
		}
		return true, p.tr.replay.Resume(t)
	}
	p.repeated = 0
	regs := s.Regs
	if err := p.uncover(t, &regs, x); err != nil {
		return true, err
	}
	stop, err := p.followAccesses(t, &regs)
	if p.asked && err == nil {
		p.asked = false
		err = ptrace.Signal(p.tr.process.PID, t.TID, unix.SIGSTOP)
	}
	switch {
	case err != nil || p.tr.replay.Over():
		return true, err
	case stop != nil:
		return true, p.tr.replay.HandleStop(*stop)
	}
	return true, p.tr.replay.Resume(t)
}

// followAccesses executes the instruction that has faulted, and those after it as long as they
// access the pages. stop is any other stop that occurred.
func (p *pages) followAccesses(t *tracee.Thread, regs *ptrace.Registers) (stop *ptrace.Stop, err error) {
	quiet := 0
	for n := range mostStepped {
		inst := p.instruction(regs.Rip, n == 0)
		if n > 0 && (inst == nil || inst.Flow == x86.FlowTrap || inst.Flow == x86.FlowSyscall || p.tr.breakpoints.UsesRegister(t)) {
			return nil, nil
		}
		a := p.about(inst, regs)
		if quiet++; a.near {
			quiet = 0
		}
		if n > 0 && quiet == mostQuiet {
			return nil, nil
		}
		before := *regs
		step := p.step
		if n == 0 { // a trap may be there; the text of the others is the program's own
			step = p.stepUnreplaced
		}
		if stop, err = p.execute(t, regs, step); stop != nil || err != nil {
			return stop, err
		}
		if err := p.unmarkFlags(inst, regs); err != nil {
			return nil, err
		}
		if inspected, err := p.executed(t, inst, &before, regs, &a); inspected || err != nil || p.tr.replay.Over() {
			return nil, err
		}
	}
	return nil, nil
}

// instruction returns the instruction at a pc; nil if there is none. faulted: it has caused a
// fault. If not, none is returned where the tool has replaced code.
func (p *pages) instruction(pc uint64, faulted bool) *x86.Inst {
	if faulted {
		return p.tr.process.Instruction(pc)
	}
	var placed, own [tracee.LongestInstruction]byte
	n := p.tr.process.ReadCode(own[:], pc)
	if _, err := p.tr.process.Memory.Memory.ReadAt(placed[:n], int64(pc)); err != nil || placed != own {
		return nil
	}
	inst, err := x86.Decode(own[:n], pc)
	if err != nil {
		return nil
	}
	return &inst
}

// accessing are the accesses that an instruction is about to make.
type accessing struct {
	// near: it accesses one of the pages.
	near bool
	// kinds are those to the watched words, by watch. masked has a bit per watch whose word a store
	// may leave out, as its mask says; conditional one per watch whose word another instruction
	// writes in some cases only.
	kinds               [tracee.DebugRegisters]evidence.AccessCode
	masked, conditional uint8
	// unknown: there are accesses at unknown addresses.
	unknown bool
}

// about returns the accesses of an instruction to the pages; nil: it is not known.
func (p *pages) about(inst *x86.Inst, regs *ptrace.Registers) accessing {
	if inst == nil {
		return accessing{unknown: true}
	}
	var a accessing
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		vector := o.Memory.Index == x86.RegVector
		if o.Repeated && !vector && regs.Rcx == 0 {
			continue
		}
		addr, known := tracee.OperandAddress(o, regs)
		size := uint64(o.Size)
		if size == 0 && known && !o.Memory.Inexact {
			size = mostSaved
			a.unknown = a.unknown || p.overlap(addr, size)
		} else if !known {
			a.unknown = true
			continue
		}
		if !p.overlap(addr, size) {
			continue
		}
		a.near = true
		for w := range p.tr.watches {
			if o.Size == 0 || !overlaps(addr, size, &p.tr.watches[w]) {
				continue
			}
			a.kinds[w] |= CodeOf(o.Access)
			switch {
			case !o.Conditional || o.Repeated || strings.HasPrefix(inst.Op, "cmpxchg") || o.Access == evidence.Read:
			case o.Access == evidence.Write:
				a.masked |= 1 << w
			default:
				a.conditional |= 1 << w
			}
		}
	}
	return a
}

// mostSaved is more than xsave writes.
const mostSaved = 16 << 10

// execute makes a thread execute one instruction by step, or one repetition of it, and reads its
// registers. stop is any other stop that occurred.
func (p *pages) execute(t *tracee.Thread, regs *ptrace.Registers, step func(*tracee.Thread) (*ptrace.Stop, error)) (stop *ptrace.Stop, err error) {
	for {
		if stop, err = step(t); err != nil {
			return nil, err
		}
		if stop == nil {
			*regs, err = ptrace.GetRegisters(t.TID)
			return nil, err
		}
		if stop.Kind != ptrace.SignalStop {
			return stop, nil
		}
		// It may access a second page.
		info, err := ptrace.GetSiginfo(t.TID)
		if err != nil {
			return nil, err
		}
		x := p.faulted(&tracee.SignalStop{Signal: stop.Signal, Code: info.Code(), Info: info, Regs: *regs})
		if x == nil || !x.covered {
			return stop, nil
		}
		if err := p.uncover(t, regs, x); err != nil {
			return nil, err
		}
	}
}

// stepUnreplaced is step at the program's own instruction: it may have faulted while a break or a
// breakpoint of the tool was passed, whose trap is there again.
func (p *pages) stepUnreplaced(t *tracee.Thread) (*ptrace.Stop, error) {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return nil, err
	}
	memory, pc := p.tr.process.Memory, regs.Rip
	var placed, own [tracee.LongestInstruction]byte
	n := p.tr.process.ReadCode(own[:], pc)
	if _, err := memory.Memory.ReadAt(placed[:n], int64(pc)); err != nil || placed == own {
		return p.step(t)
	}
	if _, err := memory.Memory.WriteAt(own[:n], int64(pc)); err != nil {
		return nil, err
	}
	stop, err := p.step(t)
	_, restored := memory.Memory.WriteAt(placed[:n], int64(pc))
	return stop, errors.Join(err, restored)
}

// step makes a thread execute one instruction. Signals that were sent to it are not delivered to
// the program, as everywhere in a replay.
func (p *pages) step(t *tracee.Thread) (stop *ptrace.Stop, err error) {
	for {
		if err := ptrace.Step(t.TID, 0); err != nil {
			return nil, err
		}
		stop, err := ptrace.WaitFor(t.TID)
		if err != nil {
			return nil, err
		}
		switch {
		case stop.Kind == ptrace.Interrupted:
		case stop.Kind != ptrace.SignalStop:
			return &stop, nil
		case stop.Signal == unix.SIGTRAP:
			return nil, nil
		case stop.Signal == unix.SIGSTOP:
			p.asked = true
		case tracee.IsFault(stop.Signal):
			return &stop, nil
		}
	}
}

// unmarkFlags clears the flag of single steps in what an instruction has saved of the flags.
func (p *pages) unmarkFlags(inst *x86.Inst, regs *ptrace.Registers) error {
	if inst == nil || !strings.HasPrefix(inst.Op, "pushf") {
		return nil
	}
	const trap = 0x1 // of the second byte
	var b [1]byte
	if _, err := p.tr.process.Memory.ReadAt(b[:], int64(regs.Rsp+1)); err != nil {
		return err
	}
	_, err := p.tr.process.Memory.WriteAt([]byte{b[0] &^ trap}, int64(regs.Rsp+1))
	return err
}

// executed makes hits of the accesses of an instruction. inspected: the process was inspected at
// one.
func (p *pages) executed(t *tracee.Thread, inst *x86.Inst, before, after *ptrace.Registers, a *accessing) (inspected bool, err error) {
	made := &made{kinds: a.kinds}
	watches := uint8(0)
	for w := range p.tr.watches {
		if a.unknown || (a.masked|a.conditional)&(1<<w) != 0 {
			written, known, err := p.written(t, w, before, a)
			if err != nil {
				return false, err
			}
			if made.kinds[w] &^= evidence.CodeWrite; written {
				made.kinds[w] |= evidence.CodeWrite
			}
			if !known {
				p.tr.strays++ // it may have been accessed
			}
		}
		if kind := made.kinds[w]; kind == evidence.CodeUnknown || p.tr.watches[w].Writes && kind&evidence.CodeWrite == 0 {
			continue
		}
		watches |= 1 << w
	}
	if watches == 0 {
		return false, nil
	}
	s, err := p.tr.see(t, after)
	if err != nil {
		return false, err
	}
	if inst != nil {
		at := *before
		p.tr.process.OutOfCopies(&at)
		made.inst = *inst
		made.inst.PC = at.Rip
		s.made = made
	}
	s.watches = watches
	number := p.tr.number
	if err := p.tr.take(s, t); err != nil {
		return false, err
	}
	for _, n := range p.tr.asked.Inspected {
		inspected = inspected || n >= number && n < p.tr.number
	}
	return inspected, nil
}

// written reports whether the instruction that a thread has executed has written a watched word that
// it may not have. known: it is certain. before are the registers before it.
func (p *pages) written(t *tracee.Thread, w int, before *ptrace.Registers, a *accessing) (written, known bool, err error) {
	now, err := p.tr.word(w)
	switch {
	case err != nil:
		return false, false, nil
	case p.tr.read[w] && now != p.tr.known[w]:
		return true, true, nil
	case a.unknown || a.masked&(1<<w) == 0:
		return false, false, nil
	}
	written, err = p.storesAgain(t, w, now, before)
	return written, err == nil, err
}

// storesAgain reports whether a store writes to a watched word, which has a value after it: the
// store is executed again, over bytes that all differ from that value.
func (p *pages) storesAgain(t *tracee.Thread, w int, value uint64, before *ptrace.Registers) (stores bool, err error) {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return false, err
	}
	other := ^value & (1<<(8*p.tr.watches[w].Size) - 1)
	if err := p.tr.setWord(w, other); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.tr.setWord(w, value), ptrace.SetRegisters(t.TID, &regs)) }()
	if err := ptrace.SetRegisters(t.TID, before); err != nil {
		return false, err
	}
	stop, err := p.stepUnreplaced(t)
	if err == nil && stop != nil {
		err = fmt.Errorf("replay: thread %d came to %v in a store that it had executed", t.TID, stop)
	}
	if err != nil {
		return false, err
	}
	now, err := p.tr.word(w)
	return now != other, err
}

// work counts the accesses to the pages since the last event. They are progress of a process that
// they slow down, but not without an end: it may be in an endless loop.
type work struct{ accesses, event uint64 }

const mostWork = 1 << 20

func (p *pages) worked() {
	const interval = 1 << 10
	w := &p.work
	if w.accesses++; w.accesses%interval == 0 && p.tr.process.Control != 0 {
		var word [8]byte
		if _, err := p.tr.process.Memory.ReadAt(word[:], int64(p.tr.process.Control+consumedOffset)); err == nil {
			if event := binary.LittleEndian.Uint64(word[:]); event != w.event {
				*w = work{event: event}
			}
		}
	}
	if w.accesses < mostWork {
		p.tr.replay.NoteHit()
	}
}
