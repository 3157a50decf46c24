package canary

import (
	"diagnose/image/x86"
)

// origin is the base of a known register's offset.
type origin uint8

const (
	unknown origin = iota
	fromCFA
	// fromAligned is the stack pointer after the prologue rounded it down.
	fromAligned
)

// position is a register's value, as far as the code alone determines it.
type position struct {
	origin origin
	offset int64
}

// positions are the known values of the general registers before an
// instruction.
type positions [16]position

// graph is the code of one function and its control flow.
type graph struct {
	insts []x86.Inst
	// at finds an instruction by its address.
	at map[uint64]int
	// damaged: some bytes could not be decoded.
	damaged bool
}

// maxCode bounds the code of a function that is analysed.
const maxCode = 1 << 18

func newGraph(code []Code) *graph {
	g := &graph{at: map[uint64]int{}}
	total := 0
	for _, c := range code {
		if total += len(c.Bytes); total > maxCode {
			g.damaged = true
			break
		}
		insts, undecodable := x86.Function(c.Bytes, uint64(c.Addr))
		g.damaged = g.damaged || undecodable > 0
		for _, inst := range insts {
			g.at[inst.PC] = len(g.insts)
			g.insts = append(g.insts, inst)
		}
	}
	return g
}

// next returns the instructions that may follow within the function. The
// targets of indirect jumps are not known.
func (g *graph) next(i int) []int {
	inst := &g.insts[i]
	var list []int
	if inst.HasTarget && inst.Flow != x86.FlowCall {
		if n, ok := g.at[inst.Target]; ok {
			list = append(list, n)
		}
	}
	switch inst.Flow {
	case x86.FlowNext, x86.FlowBranch, x86.FlowCall, x86.FlowSyscall:
		if n, ok := g.at[inst.PC+uint64(inst.Len)]; ok {
			list = append(list, n)
		}
	}
	return list
}

// heights follows the stack pointer, and the registers copied from it, from the
// entry through the whole function. The result is nil for instructions that no
// direct path reaches. If paths disagree the register is unknown, so each
// register changes at most twice and the walk ends.
func (g *graph) heights() []*positions {
	states := make([]*positions, len(g.insts))
	if len(g.insts) == 0 {
		return states
	}
	start := positions{x86.RSP: {fromCFA, -8}}
	states[0] = &start
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		after := step(*states[i], &g.insts[i])
		for _, n := range g.next(i) {
			if merge(&states[n], after) {
				work = append(work, n)
			}
		}
	}
	return states
}

// merge keeps the values in which the old and the new state agree, and reports
// whether that changed the old state.
func merge(into **positions, from positions) bool {
	if *into == nil {
		*into = &from
		return true
	}
	changed := false
	for r := range from {
		if (*into)[r] != from[r] && (*into)[r].origin != unknown {
			(*into)[r] = position{}
			changed = true
		}
	}
	return changed
}

// step returns the positions after an instruction.
func step(before positions, inst *x86.Inst) positions {
	after := before
	for _, r := range inst.Written() {
		after[r] = position{}
	}
	// A callee preserves the stack pointer and the callee-saved registers
	// (System V ABI, section 3.2.1).
	if inst.Flow == x86.FlowCall {
		for _, r := range []x86.Reg{x86.RAX, x86.RCX, x86.RDX, x86.RSI, x86.RDI, x86.R8, x86.R9, x86.R10, x86.R11} {
			after[r] = position{}
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
		after[x86.RSP] = moved(before[x86.RSP], -8)
	case "pop":
		if len(explicit) == 1 && explicit[0].Reg != x86.RSP {
			after[x86.RSP] = moved(before[x86.RSP], 8)
		}
	case "leave":
		after[x86.RSP] = moved(before[x86.RBP], 8)
	default:
		stepOperands(&after, &before, inst.Op, explicit)
	}
	return after
}

func stepOperands(after, before *positions, op string, operands []x86.Operand) {
	if len(operands) != 2 || !wholeRegister(&operands[0]) {
		return
	}
	to, from := operands[0].Reg, &operands[1]
	switch {
	case op == "mov" && wholeRegister(from):
		after[to] = before[from.Reg]
	case op == "lea" && from.IsMemory:
		m := &from.Memory
		if m.Base.General() && m.Index == x86.RegNone && !m.Addr32 && m.Segment == x86.SegNone {
			after[to] = moved(before[m.Base], m.Disp)
		}
	case op == "sub" && from.IsImm:
		after[to] = moved(before[to], -from.Imm)
	case op == "add" && from.IsImm:
		after[to] = moved(before[to], from.Imm)
	case op == "and" && from.IsImm && to == x86.RSP && before[to].origin == fromCFA:
		after[to] = position{fromAligned, 0}
	}
}

func wholeRegister(o *x86.Operand) bool {
	return !o.IsMemory && !o.IsImm && o.Reg.General() && o.Size == 8
}

// maxHeight bounds offsets, so that a loop that moves the stack pointer by a
// constant forever cannot wrap around.
const maxHeight = 1 << 40

func moved(p position, by int64) position {
	if p.origin == unknown || by > maxHeight || by < -maxHeight {
		return position{}
	}
	p.offset += by
	if p.offset > maxHeight || p.offset < -maxHeight {
		return position{}
	}
	return p
}

// covering returns the instruction that contains an address.
func (g *graph) covering(pc uint64) (int, bool) {
	for i := range g.insts {
		if inst := &g.insts[i]; pc >= inst.PC && pc < inst.PC+uint64(inst.Len) {
			return i, true
		}
	}
	return 0, false
}
