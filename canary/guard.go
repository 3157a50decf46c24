package canary

import (
	"bytes"

	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// guardOffset is where the thread control block holds the reference value of
// the guards (glibc, sysdeps/x86_64/nptl/tls.h: tcbhead_t.stack_guard).
const guardOffset = 0x28

// mayGuard reports whether the code contains the encoding of an absolute
// operand at guardOffset. Without it there is no need to decode the code.
func mayGuard(code []heights.Code) bool {
	operand := []byte{0x25, guardOffset, 0, 0, 0} // SIB without base and index, disp32
	for _, c := range code {
		if bytes.Contains(c.Bytes, operand) {
			return true
		}
	}
	return false
}

// slot is the position of a guard in its frame.
type slot struct {
	place heights.Position
	// stores are the instructions that fill it.
	stores []int
	// framePointer: the slot was addressed by a register other than rsp.
	framePointer bool
}

// isReference reports whether o is the word at fs:0x28.
func isReference(o *x86.Operand) bool {
	m := &o.Memory
	return o.IsMemory && m.Segment == x86.SegFS && m.Absolute && o.Size == 8 && m.Disp == guardOffset
}

// findSlot finds the one slot that the function's code fills with the reference
// value: "mov reg, fs:0x28" and the next store of that register, with no write
// to it and no branch in between. ok is false for a function without a guard,
// and for one whose stores differ.
func findSlot(g *heights.Graph, at []*heights.Positions) (s slot, ok bool) {
	for i := range g.Insts {
		ops := g.Insts[i].Operands
		if g.Insts[i].Op != "mov" || len(ops) < 2 || !heights.WholeRegister(&ops[0]) || !isReference(&ops[1]) {
			continue
		}
		store, found := storeOf(g, i+1, ops[0].Reg)
		if !found {
			continue // the comparison in an epilogue
		}
		m := &g.Insts[store].Operands[0].Memory
		if at[store] == nil {
			return slot{}, false
		}
		place := heights.Moved(at[store][m.Base], m.Disp)
		if place.Origin == heights.Unknown || len(s.stores) > 0 && place != s.place {
			return slot{}, false
		}
		s.place, s.framePointer = place, m.Base != x86.RSP
		s.stores = append(s.stores, store)
	}
	return s, len(s.stores) > 0
}

// storeOf finds the store of reg to the stack, from instruction i on.
func storeOf(g *heights.Graph, i int, reg x86.Reg) (int, bool) {
	const reach = 16 // compilers schedule a few instructions in between
	for end := i + reach; i < len(g.Insts) && i < end; i++ {
		inst := &g.Insts[i]
		if inst.Flow != x86.FlowNext || g.Insts[i-1].PC+uint64(g.Insts[i-1].Len) != inst.PC {
			return 0, false
		}
		ops := inst.Operands
		if inst.Op == "mov" && len(ops) >= 2 && ops[0].IsMemory && ops[0].Size == 8 && !ops[1].IsMemory &&
			!ops[1].IsImm && ops[1].Reg == reg {
			m := &ops[0].Memory
			onStack := m.Base.General() && m.Index == x86.RegNone && m.Segment == x86.SegNone && !m.Addr32
			return i, onStack
		}
		if inst.Writes(reg) {
			return 0, false
		}
	}
	return 0, false
}

// filled reports whether the slot is certainly filled when the instruction at
// index here is about to run, or is running: every path from the entry to it
// passes the store.
func (s *slot) filled(g *heights.Graph, here int) bool {
	if g.Damaged {
		return false
	}
	stores := map[int]bool{}
	for _, i := range s.stores {
		stores[i] = true
	}
	seen := make([]bool, len(g.Insts))
	seen[0] = true
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		inst := &g.Insts[i]
		if i == here || escapes(g, inst) {
			return false
		}
		if stores[i] {
			continue
		}
		for _, n := range g.Next(i) {
			if !seen[n] {
				seen[n] = true
				work = append(work, n)
			}
		}
	}
	return true
}

// escapes reports an instruction after which the function may continue at an
// address that its control flow graph does not show: a call (at a landing pad),
// an indirect jump, or a branch to another part of the function that may
// return.
func escapes(g *heights.Graph, inst *x86.Inst) bool {
	switch inst.Flow {
	case x86.FlowCall:
		return true
	case x86.FlowJump, x86.FlowBranch:
		_, within := g.At[inst.Target]
		return !inst.HasTarget || !within
	}
	return false
}
