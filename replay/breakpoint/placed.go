package breakpoint

import (
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// executedAt returns the program's instruction whose copy in the page a thread at pc has executed last;
// nil if that was the probe's own code.
func (x *probe) executedAt(pc uint64) *x86.Inst {
	for i := 0; i < len(x.placed); i += 2 {
		if offset := pc - x.page; offset > x.placed[i] && offset <= x.placed[i+1] {
			return &x.Moved[i/2]
		}
	}
	return nil
}

// HandleFault is for a fault of the program's instruction. If a probe has a copy of it elsewhere,
// the instruction is executed at its original address from then on. The program's handler gets the
// address of the faulting instruction and returns to it. That must be in the program's own text,
// so the text is restored.
func (b *Breakpoints) HandleFault(t *tracee.Thread, regs *ptrace.Registers) error {
	for tid, owner := range b.threads {
		p := owner.place
		if p == nil || p.probe == nil || !p.probe.original(regs) {
			continue
		}
		if err := p.probe.takeOut(); err != nil {
			return err
		}
		b.leaveProbe(p)
		if err := ptrace.SetRegisters(t.TID, regs); err != nil {
			return err
		}
		return b.process.WhileStopped(tid, b.set)
	}
	return nil
}

// original moves a thread at or after one of the moved instructions to the instruction's address
// in the program.
func (x *probe) original(regs *ptrace.Registers) bool {
	for i := 0; i < len(x.placed); i += 2 {
		start, end := x.page+x.placed[i], x.page+x.placed[i+1]
		if regs.Rip < start || regs.Rip > end {
			continue
		}
		inst := &x.Moved[i/2]
		if regs.Rip == end {
			regs.Rip = inst.PC + uint64(inst.Len)
			return true
		}
		tracee.BackTo(inst, start, regs)
		return true
	}
	return false
}

// Original changes the registers of a thread at or after such a copy to those that it would have in
// the program's text.
func (b *Breakpoints) Original(regs *ptrace.Registers) {
	if x := b.probeAt(regs.Rip); x != nil {
		x.original(regs)
	}
}

// leaveProbe gives a place a debug register instead of its probe. The probe's memory stays mapped,
// although it is no longer reached: to unmap it, a thread would have to run.
func (b *Breakpoints) leaveProbe(p *place) {
	b.process.Mapped = append(b.process.Mapped, p.probe.pages())
	p.probe = nil
}

func (x *probe) pages() tracee.Span {
	return tracee.Span{Start: x.page, End: x.page + probePages*tracee.PageSize}
}

// MovedFrom returns the program's instruction that a probe has executed elsewhere, if pc is right
// after that copy; nil for any other pc.
func (b *Breakpoints) MovedFrom(pc uint64) *x86.Inst {
	if x := b.probeAt(pc); x != nil {
		return x.executedAt(pc)
	}
	return nil
}

// IsComparison reports whether pc is after an instruction of a probe itself.
func (b *Breakpoints) IsComparison(pc uint64) bool {
	x := b.probeAt(pc)
	return x != nil && x.executedAt(pc) == nil
}

func (b *Breakpoints) probeAt(pc uint64) *probe {
	for _, t := range b.threads {
		if p := t.place; p != nil && p.probe != nil && pc >= p.probe.page && pc < p.probe.page+tracee.PageSize {
			return p.probe
		}
	}
	return nil
}
