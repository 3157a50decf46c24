package unwind

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

const (
	// maxJumpCode bounds the code of a function that is searched for tail calls.
	maxJumpCode = 256 << 10
	// maxStubs bounds the stubs of linkage tables that lead to each other: a stub may be
	// bound to another object's.
	maxStubs = 4
)

// tailCallsOf returns all jumps by which the function at entry calls others as its last
// action. ok is false if they are not known: it has no debug information, jumps to a computed
// address, or its compiler does not tell jumps to a label from calls.
//
// The targets are read from the code, which also has those calls that clang does not
// describe, and from the words of the global offset table that they were bound by. Debug information
// tells which jumps through registers are calls; the others choose a case of a switch.
func (u *Unwinder) tailCallsOf(entry evidence.Addr) (jumps []jump, ok bool) {
	module := u.process.ModuleAt(entry)
	if module == nil {
		return nil, false
	}
	f, err := module.FunctionCode(entry)
	if err != nil || f == nil || f.Entry != entry {
		return nil, false
	}
	s := jumpSearch{unwinder: u, module: module, function: f, described: map[evidence.Addr]bool{}}
	for _, r := range f.Ranges {
		if !s.scan(r[0], r[1]) {
			return nil, false
		}
	}
	// What is described and not in the code belongs to other code than this.
	return s.jumps, len(s.described) == len(f.TailCalls.After)+len(f.TailCalls.At)
}

// jumpSearch is the search of one function's code.
type jumpSearch struct {
	unwinder *Unwinder
	module   *image.Module
	function *image.FunctionCode
	jumps    []jump
	// described holds the described tail calls that were found, by the addresses after them.
	described map[evidence.Addr]bool
}

// scan adds the tail calls in a range of code; false: there may be others.
func (s *jumpSearch) scan(low, high evidence.Addr) bool {
	size := uint64(high - low)
	if high < low || size > maxJumpCode || s.unwinder.modules.spent.spend(int(size)) != nil {
		return false
	}
	code := make([]byte, size)
	if _, err := s.unwinder.process.ReadMemory(low, code); err != nil {
		return false
	}
	falls := false
	for at := 0; at < len(code); {
		inst, err := x86.Decode(code[at:], uint64(low)+uint64(at))
		if err != nil {
			return false
		}
		at += inst.Len
		falls = inst.Flow == x86.FlowNext || inst.Flow == x86.FlowBranch
		if (inst.Flow == x86.FlowJump || inst.Flow == x86.FlowBranch) && !s.add(&inst) {
			return false
		}
	}
	// Functions in assembler may continue in the next one.
	return s.function.TailCalls.Complete || !falls
}

// add enters a jump if it is a tail call; false: it may be one, and its target is not known.
func (s *jumpSearch) add(inst *x86.Inst) bool {
	after := evidence.Addr(inst.PC) + evidence.Addr(inst.Len)
	described := slices.Contains(s.function.TailCalls.After, s.module.LinkAddr(after)) ||
		slices.Contains(s.function.TailCalls.At, inst.PC-s.module.Bias)
	if described {
		s.described[after] = true
	}
	var to evidence.Addr
	ok := false
	switch {
	case inst.HasTarget && s.inside(evidence.Addr(inst.Target)) && !described:
		return true
	case inst.HasTarget:
		to, ok = s.unwinder.calledThrough(evidence.Addr(inst.Target))
	case s.function.TailCalls.Complete && !described && chooses(inst):
		return true
	default:
		to, ok = s.unwinder.boundTo(s.module, inst)
	}
	if ok {
		s.jumps = append(s.jumps, jump{after: after, to: to})
	}
	// Without a complete description a jump may be one to a label of another function.
	return ok && s.function.TailCalls.Complete
}

// chooses reports whether an indirect jump that is no described call goes to a case of a
// switch. clang describes no calls through memory, so of those only elements of a table at
// a fixed address are meant.
func chooses(inst *x86.Inst) bool {
	for i := range inst.Operands {
		op := &inst.Operands[i]
		if op.IsMemory && !op.Implicit {
			m := &op.Memory
			return m.Base == x86.RegNone && m.Index.General() && m.Segment == x86.SegNone
		}
	}
	return true
}

// inside reports whether an address is in the function's own code.
func (s *jumpSearch) inside(addr evidence.Addr) bool {
	return slices.ContainsFunc(s.function.Ranges, func(r [2]evidence.Addr) bool { return addr >= r[0] && addr < r[1] })
}

// calledThrough returns the function that a call or jump to an address enters: that to
// which a stub of a procedure linkage table is bound, or else the address itself.
func (u *Unwinder) calledThrough(to evidence.Addr) (evidence.Addr, bool) {
	for range maxStubs {
		module := u.process.ModuleAt(to)
		if module == nil {
			return 0, false
		}
		if !isPLT(module, to) {
			return to, true
		}
		bound, ok := u.boundBy(module, to)
		if !ok {
			return 0, false
		}
		to = bound
	}
	return 0, false
}

// boundBy returns where a stub leads. Before the first call through it that is a function by
// its name: the dynamic linker binds it then.
func (u *Unwinder) boundBy(module *image.Module, stub evidence.Addr) (evidence.Addr, bool) {
	var code [16]byte
	n, _ := u.process.ReadMemory(stub, code[:])
	for at := 0; at < n; {
		inst, err := x86.Decode(code[at:n], uint64(stub)+uint64(at))
		if err != nil {
			return 0, false
		}
		if inst.Flow == x86.FlowJump {
			to, ok := u.boundTo(module, &inst)
			if ok && u.process.ModuleAt(to) == module && isPLT(module, to) {
				return u.named(module, stub)
			}
			return to, ok
		}
		if inst.Flow != x86.FlowNext {
			return 0, false
		}
		at += inst.Len
	}
	return 0, false
}

// named finds the function that a stub is for, in the order in which the objects were loaded.
func (u *Unwinder) named(module *image.Module, stub evidence.Addr) (evidence.Addr, bool) {
	s, ok := module.Object.SymbolAt(module.LinkAddr(stub))
	name, isStub := strings.CutSuffix(s.Name, "@plt")
	if !ok || !isStub {
		return 0, false
	}
	function, ok := u.process.SymbolNamed(name)
	return function.Addr, ok
}

// boundTo returns where a jump or call through a word of the module's global offset table
// leads. Other words in memory may have changed since.
func (u *Unwinder) boundTo(module *image.Module, inst *x86.Inst) (evidence.Addr, bool) {
	for i := range inst.Operands {
		op := &inst.Operands[i]
		if !op.IsMemory || op.Implicit || op.Memory.Base != x86.RIP || op.Memory.Segment != x86.SegNone || module.Object == nil {
			continue
		}
		slot := evidence.Addr(op.Memory.Target)
		section := module.Object.SectionAt(module.LinkAddr(slot))
		if section == nil || section.Name != ".got" && section.Name != ".got.plt" {
			return 0, false
		}
		to, err := image.Uint64(u.process, slot)
		return evidence.Addr(to), err == nil && to != 0
	}
	return 0, false
}
