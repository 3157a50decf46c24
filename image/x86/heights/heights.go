// Package heights follows the stack pointer, and the registers copied from it, through the code of
// a function: where they are relative to the function's canonical frame address.
package heights

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Code is a range of a function's machine code.
type Code struct {
	Addr  evidence.Addr
	Bytes []byte
}

// Origin is the base of a known register's offset.
type Origin uint8

// The origins.
const (
	Unknown Origin = iota
	// FromCFA is the canonical frame address: the stack pointer before the call.
	FromCFA
	// FromAligned is the stack pointer after the prologue rounded it down.
	FromAligned
)

// Position is a register's value, as far as the code alone determines it.
type Position struct {
	Origin Origin
	Offset int64
}

// Positions are the known values of the general registers before an
// instruction.
type Positions [16]Position

// Graph is the code of one function and its control flow.
type Graph struct {
	Insts []x86.Inst
	// At finds an instruction by its address.
	At map[uint64]int
	// Damaged: some bytes could not be decoded.
	Damaged bool
}

// maxCode bounds the code of a function that is analysed.
const maxCode = 1 << 18

// New decodes the code of a function, the range with its entry first. Damaged says that it is longer than
// the bound, or not all code.
func New(code []Code) *Graph {
	g := &Graph{At: map[uint64]int{}}
	total := 0
	for _, c := range code {
		if total += len(c.Bytes); total > maxCode {
			g.Damaged = true
			break
		}
		insts, undecodable := x86.Function(c.Bytes, uint64(c.Addr))
		g.Damaged = g.Damaged || undecodable > 0
		for _, inst := range insts {
			g.At[inst.PC] = len(g.Insts)
			g.Insts = append(g.Insts, inst)
		}
	}
	return g
}

// Next returns the instructions that may follow within the function. The
// targets of indirect jumps are not known.
func (g *Graph) Next(i int) []int {
	inst := &g.Insts[i]
	var list []int
	if inst.HasTarget && inst.Flow != x86.FlowCall {
		if n, ok := g.At[inst.Target]; ok {
			list = append(list, n)
		}
	}
	switch inst.Flow {
	case x86.FlowNext, x86.FlowBranch, x86.FlowCall, x86.FlowSyscall:
		if n, ok := g.At[inst.PC+uint64(inst.Len)]; ok {
			list = append(list, n)
		}
	}
	return list
}

// Heights follows the stack pointer, and the registers copied from it, from the
// entry through the whole function, also through words of the frame where the code keeps them. The result is nil for
// instructions that no direct path reaches. If paths disagree the register is unknown, so each
// register changes at most twice and the walk ends.
func (g *Graph) Heights() []*Positions {
	result := make([]*Positions, len(g.Insts))
	if len(g.Insts) == 0 {
		return result
	}
	states := make([]*state, len(g.Insts))
	states[0] = &state{registers: Positions{x86.RSP: {FromCFA, -8}}}
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		after := states[i].step(&g.Insts[i])
		for _, n := range g.Next(i) {
			if merge(&states[n], after) {
				work = append(work, n)
			}
		}
	}
	for i := range states {
		if states[i] != nil {
			result[i] = &states[i].registers
		}
	}
	return result
}

// merge keeps the values in which the old and the new state agree, and reports
// whether that changed the old state.
func merge(into **state, from state) bool {
	if *into == nil {
		*into = &from
		return true
	}
	changed := false
	old := *into
	for r := range from.registers {
		if old.registers[r] != from.registers[r] && old.registers[r].Origin != Unknown {
			old.registers[r] = Position{}
			changed = true
		}
	}
	if kept := common(old.words, from.words); len(kept) != len(old.words) {
		old.words = kept
		changed = true
	}
	return changed
}

// step returns the positions after an instruction.
func step(before Positions, inst *x86.Inst) Positions {
	after := before
	for _, r := range inst.Written() {
		after[r] = Position{}
	}
	// A callee preserves the stack pointer and the callee-saved registers
	// (System V ABI, section 3.2.1).
	if inst.Flow == x86.FlowCall {
		for _, r := range []x86.Reg{x86.RAX, x86.RCX, x86.RDX, x86.RSI, x86.RDI, x86.R8, x86.R9, x86.R10, x86.R11} {
			after[r] = Position{}
		}
		after[x86.RSP] = before[x86.RSP]
		return after
	}
	explicit := inst.Operands
	for len(explicit) > 0 && explicit[len(explicit)-1].Implicit {
		explicit = explicit[:len(explicit)-1]
	}
	switch inst.Op {
	case "push":
		after[x86.RSP] = Moved(before[x86.RSP], -8)
	case "pop":
		if len(explicit) == 1 && explicit[0].Reg != x86.RSP {
			after[x86.RSP] = Moved(before[x86.RSP], 8)
		}
	case "leave":
		after[x86.RSP] = Moved(before[x86.RBP], 8)
	default:
		stepOperands(&after, &before, inst.Op, explicit)
	}
	return after
}

func stepOperands(after, before *Positions, op string, operands []x86.Operand) {
	if len(operands) != 2 || !WholeRegister(&operands[0]) {
		return
	}
	to, from := operands[0].Reg, &operands[1]
	switch {
	case op == "mov" && WholeRegister(from):
		after[to] = before[from.Reg]
	case op == "lea" && from.IsMemory:
		m := &from.Memory
		if m.Base.General() && m.Index == x86.RegNone && !m.Addr32 && m.Segment == x86.SegNone {
			after[to] = Moved(before[m.Base], m.Disp)
		}
	case op == "sub" && from.IsImm:
		after[to] = Moved(before[to], -from.Imm)
	case op == "add" && from.IsImm:
		after[to] = Moved(before[to], from.Imm)
	case op == "and" && from.IsImm && to == x86.RSP && before[to].Origin == FromCFA:
		after[to] = Position{FromAligned, 0}
	}
}

// WholeRegister reports whether an operand is a general register of 64 bits.
func WholeRegister(o *x86.Operand) bool {
	return !o.IsMemory && !o.IsImm && o.Reg.General() && o.Size == 8
}

// maxHeight bounds offsets, so that a loop that moves the stack pointer by a
// constant forever cannot wrap around.
const maxHeight = 1 << 40

// Moved returns the position by so many bytes higher; unknown where that is absurd.
func Moved(p Position, by int64) Position {
	if p.Origin == Unknown || by > maxHeight || by < -maxHeight {
		return Position{}
	}
	p.Offset += by
	if p.Offset > maxHeight || p.Offset < -maxHeight {
		return Position{}
	}
	return p
}

// Covering returns the instruction that contains an address.
func (g *Graph) Covering(pc uint64) (int, bool) {
	for i := range g.Insts {
		if inst := &g.Insts[i]; pc >= inst.PC && pc < inst.PC+uint64(inst.Len) {
			return i, true
		}
	}
	return 0, false
}
