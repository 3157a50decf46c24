package replay

import (
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// at is the instruction of the program's that a thread executed last which
// stands at an address of the page; nil: the probe's own.
func (x *probe) at(pc uint64) *x86.Inst {
	for i := 0; i < len(x.placed); i += 2 {
		if offset := pc - x.page; offset > x.placed[i] && offset <= x.placed[i+1] {
			return &x.moved[i/2]
		}
	}
	return nil
}

// faulted implements placer. What the program's handler is told, and where it
// returns to, is the program's own text, so that is put back.
func (b *breakpoints) faulted(t *thread, regs *ptrace.Registers) error {
	for tid, owner := range b.threads {
		p := owner.place
		if p == nil || p.probe == nil || !p.probe.original(regs) {
			continue
		}
		if err := b.restore(p.probe); err != nil {
			return err
		}
		b.leaveProbe(p)
		if err := ptrace.SetRegisters(t.tid, regs); err != nil {
			return err
		}
		return b.whileStopped(tid, owner.set)
	}
	return nil
}

// original takes a thread that stands at one of the moved instructions, or behind it,
// to where the program has it.
func (x *probe) original(regs *ptrace.Registers) bool {
	for i := 0; i < len(x.placed); i += 2 {
		start, end := x.page+x.placed[i], x.page+x.placed[i+1]
		if regs.Rip < start || regs.Rip > end {
			continue
		}
		inst := &x.moved[i/2]
		if regs.Rip == end {
			regs.Rip = inst.PC + uint64(inst.Len)
			return true
		}
		backTo(inst, start, regs)
		return true
	}
	return false
}

// backTo takes a thread from what stands for an instruction, at start, to where the
// program has it.
func backTo(inst *x86.Inst, start uint64, regs *ptrace.Registers) {
	if inst.Flow == x86.FlowCall && regs.Rip > start {
		regs.Rsp += 8 // which its replacement subtracts first
	}
	regs.Rip = inst.PC
}

// original implements placer.
func (b *breakpoints) original(regs *ptrace.Registers) {
	if x := b.probeAt(regs.Rip); x != nil {
		x.original(regs)
	}
}

// leaveProbe gives a place a debug register instead of its probe, whose memory stays
// where nobody comes any more: to unmap it, a thread would have to run.
func (b *breakpoints) leaveProbe(p *place) {
	b.c.mapped = append(b.c.mapped, span{p.probe.page, p.probe.page + probePages*pageSize})
	p.probe = nil
}

// moved and compares say of a pc which probe's code it follows.
func (b *breakpoints) moved(pc uint64) *x86.Inst {
	if x := b.probeAt(pc); x != nil {
		return x.at(pc)
	}
	return nil
}

func (b *breakpoints) compares(pc uint64) bool {
	x := b.probeAt(pc)
	return x != nil && x.at(pc) == nil
}

func (b *breakpoints) probeAt(pc uint64) *probe {
	for _, t := range b.threads {
		if p := t.place; p != nil && p.probe != nil && pc >= p.probe.page && pc < p.probe.page+pageSize {
			return p.probe
		}
	}
	return nil
}
