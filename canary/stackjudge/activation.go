package stackjudge

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// activation is a frame of a function, which may have returned, with the word in it that is bad.
type activation struct {
	*function
	cfa  evidence.Addr
	word word
	// variables are those of the frame that are no array and have none.
	variables []extent
}

// extent is a piece of memory.
type extent struct{ start, end evidence.Addr }

// word is what an overrun wrote over.
type word struct {
	kind     evidence.FrameWord
	addr     evidence.Addr
	register x86.Reg
}

// Bounds of the search for what a function that has returned left on the stack.
const (
	mostBelow = 256 << 10 // bytes
	mostAbove = 64 << 10  // bytes
)

// activations are the frames with a bad word that explains the failure. Several are possible where the function
// has returned.
func (j *judge) activations() []activation {
	f := j.Failure
	switch {
	case j.Guard != 0:
		return j.guarded()
	case f.Fault == nil:
		return nil
	case f.Fault.Access != evidence.Execute:
		return j.restored()
	case f.Arrival == evidence.ArrivedByReturn:
		return j.returned()
	}
	return nil
}

// guarded is the frame with the guard.
func (j *judge) guarded() []activation {
	for i := range j.Frames {
		f := &j.Frames[i]
		if f.CFA == 0 || f.Trust.Guess() || j.Guard < f.Registers.SP() || j.Guard >= f.CFA {
			continue
		}
		if fn := j.functionAt(f.LookupPC()); fn != nil {
			return []activation{{function: fn, cfa: f.CFA, word: word{kind: evidence.WordGuard, addr: j.Guard}}}
		}
		return nil
	}
	return nil
}

// returned are the functions that may have returned to the bad address.
func (j *judge) returned() []activation {
	regs := &j.Frames[0].Registers
	pc, sp := regs.PC(), regs.SP()
	if pc == j.Failure.Fault.Addr {
		return j.leftBefore(sp)
	}
	fn := j.functionAt(pc)
	if fn == nil {
		return nil
	}
	i, ok := fn.At[uint64(pc)]
	if !ok || fn.Insts[i].Flow != x86.FlowReturn {
		return nil
	}
	height, ok := fn.height(i)
	if !ok || height != -8 {
		return nil
	}
	if fn.byFramePointer() && !fn.left(j.Process, sp+8) && fn.calls() {
		return nil // the stack pointer may be wrong
	}
	return []activation{{function: fn, cfa: sp + 8, word: word{kind: evidence.WordReturnAddress, addr: sp}}}
}

// calls reports whether the function calls others.
func (f *function) calls() bool {
	return slices.ContainsFunc(f.Insts, func(inst x86.Inst) bool { return inst.Flow == x86.FlowCall })
}

// leftBefore are the functions whose return left the stack pointer at sp: those whose last call left its return
// address where their frame, below sp, has it. If there is none, the function has called none, and they are those that
// a caller with a frame at sp may have called.
func (j *judge) leftBefore(sp evidence.Addr) []activation {
	if v, err := image.Uint64(j.Process, sp); err == nil && j.afterCall(evidence.Addr(v)) {
		return nil // a thunk that calls by a return
	}
	returned := word{kind: evidence.WordReturnAddress, addr: sp - 8}
	var list []activation
	for at := sp - 16; at > sp-mostBelow; at -= 8 {
		v, err := image.Uint64(j.Process, at)
		if err != nil {
			break
		}
		fn, call := j.callAt(evidence.Addr(v))
		if fn == nil {
			continue
		}
		if height, ok := fn.height(call); ok && at+8-evidence.Addr(height) == sp && !contains(list, fn) {
			list = append(list, activation{function: fn, cfa: sp, word: returned})
		}
	}
	if list = slices.DeleteFunc(list, func(a activation) bool { return !j.restores(&a) }); len(list) > 0 {
		return list
	}
	for _, fn := range j.calledFrom(sp) {
		list = append(list, activation{function: fn, cfa: sp, word: returned})
	}
	return slices.DeleteFunc(list, func(a activation) bool { return !j.restores(&a) })
}

// restores reports whether the registers are those that the function's frame has for its caller, as they are right after
// it has returned.
func (j *judge) restores(a *activation) bool {
	for _, r := range kept {
		slot, saved := a.savedAt(r)
		now, known := j.Frames[0].Registers.Get(r)
		if !saved || !known {
			continue
		}
		if v, err := image.Uint64(j.Process, a.cfa+evidence.Addr(slot)); err != nil || v != now {
			return false
		}
	}
	return true
}

func contains(list []activation, fn *function) bool {
	return slices.ContainsFunc(list, func(a activation) bool { return a.function == fn })
}

// callAt is the function with the call that returns to pc; nil: there is none.
func (j *judge) callAt(pc evidence.Addr) (*function, int) {
	if !j.afterCall(pc) {
		return nil, 0
	}
	fn := j.functionAt(pc - 1)
	if fn == nil {
		return nil, 0
	}
	i, ok := fn.callBefore(pc)
	if !ok {
		return nil, 0
	}
	return fn, i
}

// afterCall reports whether the bytes before pc, in code, may be a call.
func (j *judge) afterCall(pc evidence.Addr) bool {
	m := j.Process.MappingAt(pc)
	if m == nil || !m.Executable() {
		return false
	}
	const longest = 7
	var code [longest]byte
	if _, err := j.Process.ReadMemory(pc-longest, code[:]); err != nil {
		return false
	}
	for at := range longest - 1 {
		inst, err := x86.Decode(code[at:], uint64(pc)-longest+uint64(at))
		if err == nil && inst.Flow == x86.FlowCall && at+inst.Len == longest {
			return true
		}
	}
	return false
}

// calledFrom are the functions that the caller with the lowest whole frame above sp calls when its stack pointer is
// at sp. The caller is what the call before a return address further up leads to.
func (j *judge) calledFrom(sp evidence.Addr) (list []*function) {
	for at := sp; at < sp+mostAbove; at += 8 {
		v, err := image.Uint64(j.Process, at)
		if err != nil {
			return nil
		}
		fn, call := j.callAt(evidence.Addr(v))
		if fn == nil {
			continue
		}
		caller := j.calledBy(fn, call)
		if caller == nil {
			continue
		}
		if list = j.calledAt(caller, int64(sp)-int64(at)-8); len(list) > 0 {
			return list
		}
	}
	return nil
}

// calledBy is the function that a call leads to by its own target; of one by a pointer, outside of the program, main.
func (j *judge) calledBy(fn *function, call int) *function {
	if inst := &fn.Insts[call]; inst.HasTarget {
		return j.functionAt(evidence.Addr(inst.Target))
	}
	if main, ok := j.Process.SymbolNamed("main"); ok && fn.module != main.Module {
		return j.functionAt(main.Addr)
	}
	return nil
}

// calledAt are the functions that a function calls while its stack pointer is at a height; none if one of the calls is
// by a pointer, as that may have been the call.
func (j *judge) calledAt(caller *function, height int64) (list []*function) {
	for i := range caller.Insts {
		inst := &caller.Insts[i]
		if h, ok := caller.height(i); inst.Flow != x86.FlowCall || !ok || h != height {
			continue
		}
		if !inst.HasTarget {
			return nil
		}
		if fn := j.functionAt(evidence.Addr(inst.Target)); fn != nil && !slices.Contains(list, fn) {
			list = append(list, fn)
		}
	}
	return list
}

// restored is the frame of the function that the failing one called last, if that restored a register from it with
// which the failing instruction made its address.
func (j *judge) restored() []activation {
	regs := &j.Frames[0].Registers
	pc, sp := regs.PC(), regs.SP()
	caller := j.functionAt(pc)
	if caller == nil {
		return nil
	}
	i, ok := caller.At[uint64(pc)]
	if !ok {
		return nil
	}
	v, err := image.Uint64(j.Process, sp-8)
	if err != nil {
		return nil
	}
	call, ok := caller.callBefore(evidence.Addr(v))
	if !ok || !caller.Insts[call].HasTarget {
		return nil
	}
	now, ok := caller.height(i)
	if then, known := caller.height(call); !ok || !known || now != then {
		return nil
	}
	fn := j.functionAt(evidence.Addr(caller.Insts[call].Target))
	if fn == nil {
		return nil
	}
	var list []activation
	for _, r := range kept {
		slot, saved := fn.savedAt(r)
		bad, known := regs.Get(r)
		at := sp + evidence.Addr(slot)
		if !saved || !known || !addressed(&caller.Insts[i], r) || j.Process.MappingAt(evidence.Addr(bad)) != nil {
			continue
		}
		if v, err := image.Uint64(j.Process, at); err == nil && v == bad {
			list = append(list, activation{function: fn, cfa: sp, word: word{evidence.WordSavedRegister, at, r}})
		}
	}
	return list
}

// savedAt is where the function pushes a register of its caller, relative to the CFA.
func (f *function) savedAt(r x86.Reg) (int64, bool) {
	for i := range f.Insts {
		inst := &f.Insts[i]
		if inst.Op != "push" || len(inst.Operands) == 0 || !isRegister(&inst.Operands[0], r) {
			continue
		}
		height, ok := f.height(i)
		return height - 8, ok
	}
	return 0, false
}

func isRegister(o *x86.Operand, r x86.Reg) bool {
	return !o.IsMemory && !o.IsImm && o.Reg == r
}

// addressed reports whether an instruction makes the address of an access with a register.
func addressed(inst *x86.Inst, r x86.Reg) bool {
	return slices.ContainsFunc(inst.Operands, func(o x86.Operand) bool {
		return o.IsMemory && o.Access != "" && (o.Memory.Base == r || o.Memory.Index == r)
	})
}
