package verdict

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay"
	"diagnose/staticscan"
)

// mostConditions bounds the branches that may have decided that the program gave up.
const mostConditions = 16

// lastCondition is the branch that decided that the program gave up, by a call in frame own: one way
// from it leads to that call, and the other does not. Where the function gives up whatever happens,
// its caller is asked. Of several branches it is the one that the recorded run came to last. It is
// 0 where none is known.
func (r *reach) lastCondition(in staticscan.Input, own int) evidence.Addr {
	const callers = 3
	for k := own; k+1 < len(in.Frames) && k < own+callers; k++ {
		code, entry := functionCode(r.in.Process, in.Frames[k].LookupPC())
		end := in.Frames[k].PC()
		if list := conditions(r.in.Process, code, entry, end); len(list) > 0 {
			return r.moments.lastPassed(list)
		}
		if entry == 0 || !leadsTo(r.in.Process, entry, end) {
			return 0
		}
	}
	return 0
}

// functionCode is the code of the function that an address is in. Compilers move what is seldom
// executed, such as the call of abort, into a part of its own (gcc: ".cold"); the branches are in
// the other part.
func functionCode(p *image.Process, at evidence.Addr) (code []byte, entry evidence.Addr) {
	s, ok := p.SymbolAt(at)
	if !ok {
		return nil, 0
	}
	if part, found := s.Module.Object.SymbolAt(s.Module.LinkAddr(at)); found {
		name, _, cold := strings.Cut(part.Name, ".cold")
		if hot, found := s.Module.Object.SymbolNamed(name); cold && found {
			s.Addr, s.Size = s.Module.Addr(hot.Value), hot.Size
		}
	}
	if s.Size == 0 || s.Size > mostFunction {
		return nil, 0
	}
	code = make([]byte, s.Size)
	n, err := p.ReadMemory(s.Addr, code)
	if err != nil || n != len(code) {
		return nil, 0
	}
	return code, s.Addr
}

// conditions are the branches of a function from which one way alone leads to the call before end.
func conditions(m image.Memory, code []byte, entry, end evidence.Addr) (list []evidence.Addr) {
	insts, _ := x86.Function(code, uint64(entry))
	for i := range insts {
		b := &insts[i]
		if b.Flow != x86.FlowBranch || !b.HasTarget {
			continue
		}
		taken, falls := leadsTo(m, evidence.Addr(b.Target), end), leadsTo(m, evidence.Addr(b.PC)+evidence.Addr(b.Len), end)
		if taken != falls && len(list) < mostConditions {
			list = append(list, evidence.Addr(b.PC))
		}
	}
	return list
}

// lastPassed is the instruction of a list that the failing thread of the recorded run came to last; 0:
// it came to none, or that is not known.
func (m *moments) lastPassed(list []evidence.Addr) (last evidence.Addr) {
	if len(list) == 1 {
		return list[0]
	}
	thread := m.rec.Manifest.Outcome.Thread
	var breaks []replay.Break
	for _, pc := range list {
		passed := 0
		breaks = append(breaks, replay.Break{PC: pc, Do: func(s *replay.Stopped) error {
			if s.Moment.Thread == thread {
				last = pc
			}
			if passed++; passed > mostReached {
				return replay.ErrBreakOver
			}
			return nil
		}})
	}
	if _, err := replay.Run(m.progress.ctx, m.rec, replay.FreeRequest{Common: replay.Common{Image: m.files}, Breaks: breaks}); err != nil {
		m.progress.failedPart(err)
		return 0
	}
	return last
}

// otherInputs says in which register that the failing instruction reads, or in which word of memory,
// a run that failed at that instruction differs from the recorded one; empty: in none. Registers
// that it does not read may differ.
func (e *recordedEnd) otherInputs(now *image.Process) string {
	recorded := e.in.Process
	if e.in.Ending != nil {
		recorded = e.in.Ending
	}
	was, is := recorded.FailingThread(), now.FailingThread()
	if e.in.Case.Failure.Fault == nil || was == nil || is == nil || was.Registers.PC() != is.Registers.PC() {
		return ""
	}
	const longest = 15 // bytes of an instruction (Intel SDM, volume 2, 2.3.11)
	code := make([]byte, longest)
	n, _ := recorded.ReadMemory(was.Registers.PC(), code) // as far as it goes
	in, err := x86.Decode(code[:n], uint64(was.Registers.PC()))
	if err != nil {
		return "" // it failed to fetch the instruction
	}
	return otherOperands(&in, e.in.Case.Failure.Fault.Addr, recorded, now, &was.Registers, &is.Registers)
}

// otherOperands compares what an instruction that faulted at an address reads in two processes that are about to execute it. What it faulted
// at is not read in either, though a debugger may read it, as a guard page.
func otherOperands(in *x86.Inst, fault evidence.Addr, recorded, now image.Memory, was, is *image.Registers) string {
	differs := func(r x86.Reg) bool {
		if r == x86.RegNone || r > x86.R15 {
			return false
		}
		a, known := was.Get(image.Register(r))
		b, also := is.Get(image.Register(r))
		return known && also && a != b
	}
	for i := range in.Operands {
		o := &in.Operands[i]
		if !o.IsMemory {
			if o.Access != evidence.Write && differs(o.Reg) {
				return o.Reg.String()
			}
			continue
		}
		for _, r := range []x86.Reg{o.Memory.Base, o.Memory.Index} {
			if differs(r) {
				return r.String()
			}
		}
		at, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) { return was.Get(image.Register(r)) })
		faulted := fault >= evidence.Addr(at) && fault-evidence.Addr(at) < evidence.Addr(max(o.Size, 0))
		if !known || faulted || o.Access == evidence.Write || o.Size <= 0 || o.Size > wordSize || o.Memory.Segment != x86.SegNone {
			continue
		}
		a, b := make([]byte, o.Size), make([]byte, o.Size)
		n, _ := recorded.ReadMemory(evidence.Addr(at), a) // it may be what cannot be read
		k, _ := now.ReadMemory(evidence.Addr(at), b)
		if n != k || string(a[:n]) != string(b[:k]) {
			return "the memory at " + evidence.Addr(at).String()
		}
	}
	return ""
}

// countBefore has arrivals counted at the instruction before the place of the failure, if code comes
// to that place from there alone. It reports false where it does not.
func (r *reach) countBefore() bool {
	code, entry := functionCode(r.in.Process, r.prepared().pc)
	before, ok := leadingTo(code, entry, r.pc)
	if ok {
		r.pc, r.tested = before, image.RIP // its value is loaded later
	}
	return ok
}

// leadingTo is the instruction of a function from which alone code comes to the one at pc.
func leadingTo(code []byte, entry, pc evidence.Addr) (before evidence.Addr, ok bool) {
	insts, _ := x86.Function(code, uint64(entry))
	for i := range insts {
		in := &insts[i]
		if in.HasTarget && in.Target == uint64(pc) || in.Flow == x86.FlowJump && !in.HasTarget {
			return 0, false
		}
		if in.PC+uint64(in.Len) == uint64(pc) && in.Flow == x86.FlowNext {
			before, ok = evidence.Addr(in.PC), true
		}
	}
	return before, ok
}
