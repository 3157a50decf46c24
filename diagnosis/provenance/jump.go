package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// refused reports whether step n is a jump, a call or a return to an address that the processor does not accept: it fails itself,
// and not what it leads to (Intel, volume 3, 6.15, general protection).
func (f *steps) refused(n int) bool {
	inst := f.trace.Step(n).Inst
	if inst.HasTarget || inst.Flow != x86.FlowCall && inst.Flow != x86.FlowJump && inst.Flow != x86.FlowReturn {
		return false
	}
	for k := range inst.Operands {
		if o := &inst.Operands[k]; o.IsMemory && o.Access == evidence.Read {
			addr, known := f.trace.Address(n, k)
			return known && f.program.Mapped(addr) // what cannot be read there is the failure otherwise
		}
	}
	return true
}

// target follows the address to which a thread jumped, called or returned at a step.
func (f *follower) target(at int) (w *Way, ok bool) {
	if at < 0 || f.trace.Step(at).Inst == nil {
		return nil, false
	}
	inst := f.trace.Step(at).Inst
	for k := range inst.Operands {
		o := &inst.Operands[k]
		switch {
		case inst.Flow != x86.FlowCall && inst.Flow != x86.FlowJump && inst.Flow != x86.FlowReturn:
			return nil, false
		case inst.Flow == x86.FlowReturn && o.IsMemory, inst.Flow != x86.FlowReturn && o.IsMemory && !o.Implicit:
			addr, known := f.trace.Address(at, k)
			if !known {
				return nil, false
			}
			if inst.Flow == x86.FlowReturn && f.strayed(at, addr) {
				f.follow(flow.Register(f.trace.Step(at).Thread, x86.RSP, 8), at)
				return f.way, true
			}
			if inst.Flow == x86.FlowReturn && f.overwritten(at, addr) {
				return f.way, true
			}
			if inst.Flow == x86.FlowReturn || !f.access(at, k) {
				f.follow(flow.Memory(addr, 8), at)
			}
			return f.typed(at, k), true
		case inst.Flow != x86.FlowReturn && !o.IsImm && o.Reg.General() && !o.Implicit:
			target := flow.Register(f.trace.Step(at).Thread, o.Reg, 8)
			f.follow(target, at)
			if d := f.define(target, at); d.Kind == flow.Copied && d.From[0].Space == transfer.Memory {
				return f.typed(d.At, 1), true
			}
			return f.way, true
		}
	}
	return nil, false
}

// overwritten ends the way at a store over the return address that the call of the function pushed, before the return at step at. Whatever
// was stored there, it is no value of that place. A function that returns to an address that it chose itself stores it where its
// stack pointer points (retpolines: Intel, Retpoline: A Branch Target Injection Mitigation), and is followed as other code.
func (f *follower) overwritten(at int, slot evidence.Addr) bool {
	const address = 8 // bytes of a return address
	call := newFrames(f.trace, f.program).call[at]
	d := f.trace.Define(flow.Memory(slot, address), at)
	if call == none || d.At <= call {
		return false
	}
	if s := f.trace.Step(d.At); s.Inst != nil {
		for k := range s.Inst.Operands {
			o := &s.Inst.Operands[k]
			if o.IsMemory && o.Access.Writes() && o.Memory.Base == x86.RSP && o.Memory.Disp == 0 && !o.Memory.Index.General() {
				return false
			}
		}
		if f.broken(d) {
			return true
		}
	}
	if d.Part.Space == transfer.Memory {
		f.link(Stored, d.At, d.Part)
	}
	f.end(Overwrote, d.At)
	return true
}

// strayed reports whether the stack pointer at a return differs from that at the entry of the function, or is in a frame that has
// returned: then the memory there has no return address, and what made the stack pointer matters.
func (f *follower) strayed(at int, sp evidence.Addr) bool {
	const address = 8 // bytes of a return address
	if call := newFrames(f.trace, f.program).call[at]; call != none {
		return f.trace.Register(at, x86.RSP) != f.trace.Register(call, x86.RSP)-address
	}
	return newFollower(f.trace, f.program).unset(f.trace.Define(flow.Memory(sp, address), at), at)
}

// typed replaces a way that ended in memory which never changed, if operand k of step n is in a table to which an
// object points: then it is the object that is of another type.
func (f *follower) typed(n, k int) *Way {
	inst := f.trace.Step(n).Inst
	if f.way.End != Initial || k >= len(inst.Operands) || !inst.Operands[k].IsMemory {
		return f.way
	}
	table, at := inst.Operands[k].Memory.Base, n
	if !table.General() {
		return f.way
	}
	l := flow.Register(f.trace.Step(n).Thread, table, 8)
	for range 8 { // copies, and an index into the table
		d := f.define(l, at)
		from := values(d)
		if len(from) != 1 {
			return f.way
		}
		if l, at = from[0], d.At; l.Space != transfer.Memory {
			continue
		}
		if o := f.trace.ObjectAt(l.Addr, at); o != nil && o.Addr == l.Addr {
			f.way.Object = o
			f.end(Made, o.Made)
			return f.way
		}
	}
	return f.way
}
