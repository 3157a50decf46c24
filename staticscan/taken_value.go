package staticscan

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// spot is what is looked for: a register, a part of a vector register, or memory.
type spot struct {
	reg    x86.Reg
	vector string
	offset int
	memory bool
	addr   evidence.Addr
	size   int
	value  uint64 // of memory
}

// mostMoves bounds how often a value is followed from one place to another.
const mostMoves = 10_000

func (t *resultSearch) follow(w *Course, before int, at spot) Given {
	outward := 0
	for range mostMoves {
		i := t.definition(w, before, &at)
		if i < 0 {
			if w.Outer == nil || len(w.Outer.Steps) == 0 {
				return t.cameIn(w, &at, outward)
			}
			w, before, outward = w.Outer, len(w.Outer.Steps)-1, outward+1
			continue
		}
		g, next := t.gave(w, i, &at)
		if next == nil {
			g.Course, g.Step, g.Outward = w, i, outward
			g.Site = t.ownSite(w.Steps[i].Registers.PC())
			return g
		}
		at, before = *next, i
	}
	return Given{Kind: evidence.OriginUnknown, Text: "the value was moved too often", Course: w, Outward: outward}
}

// definition is the last instruction before one that gave the spot its value; -1 if
// none did.
func (t *resultSearch) definition(w *Course, before int, at *spot) int {
	for i := before - 1; i >= 0; i-- {
		in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
		if err != nil {
			return -1
		}
		switch {
		case at.memory:
			if t.stores(w, i, in, at) {
				return i
			}
		case at.vector != "":
			if in.Flow == x86.FlowCall {
				return i
			}
			if to, ok := explicit(in, 0); ok && !to.IsMemory && !to.IsImm && vectorNumber(to.RegName) == at.vector && to.Access.Writes() {
				return i
			}
		case defines(in, at.reg), w.called(i, in) && slices.Contains(callerSaved[:], at.reg):
			return i
		}
	}
	return -1
}

// called reports whether an instruction stands for a call.
func (w *Course) called(i int, in *x86.Inst) bool {
	return in.Flow == x86.FlowCall || w.Jumped && i == len(w.Steps)-1
}

// stores reports whether an instruction stored to memory that overlaps the spot. What
// calls stored is told by the value.
func (t *resultSearch) stores(w *Course, i int, in *x86.Inst, at *spot) bool {
	if in.Flow == x86.FlowCall || in.Flow == x86.FlowSyscall {
		return false
	}
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory || !op.Access.Writes() || op.Size < 1 {
			continue
		}
		to, known := operandAddress(op, &w.Steps[i].Registers)
		if known && to < at.addr+evidence.Addr(at.size) && at.addr < to+evidence.Addr(op.Size) {
			return true
		}
	}
	return false
}

// gave says what an instruction gave to the spot: the next spot to look for, or else
// where the value came from.
func (t *resultSearch) gave(w *Course, i int, at *spot) (Given, *spot) {
	in, _ := w.inst(t.memory, w.Steps[i].Registers.PC())
	regs := &w.Steps[i].Registers
	if at.memory {
		return t.gaveMemory(w, i, in, at)
	}
	if at.vector != "" {
		return t.gaveVector(w, i, in, at)
	}
	switch {
	case (w.called(i, in) || in.Flow == x86.FlowSyscall) && at.reg == x86.RAX:
		return Given{Kind: evidence.OriginResult, Value: after(w, i, x86.RAX)}, nil
	case w.called(i, in) || in.Flow == x86.FlowSyscall:
		return lostGiven("a call changed it"), nil
	}
	src, two := explicit(in, 1)
	dst, one := explicit(in, 0)
	switch {
	case in.Op == "pop":
		return t.loaded(w, i, evidence.Addr(regs.SP()), 8)
	case in.Op == "cdqe" || in.Op == "cdq" || in.Op == "cqo":
		return Given{}, &spot{reg: x86.RAX, size: 4}
	case !one || dst.IsMemory || dst.Reg != at.reg:
		return lostGiven(fmt.Sprintf("it was computed by %q", in.Text())), nil
	case in.Op == "mov" || in.Op == "movabs" || in.Op == "movzx" || in.Op == "movsx" || in.Op == "movsxd" || in.Op == "movq" || in.Op == "movd":
		return t.operand(w, i, src, 0)
	case strings.HasPrefix(in.Op, "set"):
		t.choice(i)
		return lostGiven("a condition gave it"), nil
	case strings.HasPrefix(in.Op, "cmov") && two:
		t.choice(i)
		old, _ := regs.Get(image.Register(dst.Reg))
		if v, known := t.value(w, i, src); known && v == after(w, i, at.reg) && v != old {
			return t.operand(w, i, src, 0)
		} else if known && v != old {
			return Given{}, &spot{reg: at.reg, size: at.size}
		}
		lost := lostGiven("it was one of two equal values")
		lost.Value, lost.Equal = after(w, i, at.reg), true
		return lost, nil
	case two && in.Op == "xor" && sameRegister(dst, src), two && in.Op == "sub" && sameRegister(dst, src), two && in.Op == "and" && src.IsImm && src.Imm == 0:
		if t.knownZero(w, i, at.reg) {
			return Given{}, &spot{reg: at.reg, size: at.size}
		}
		return t.constant(0), nil
	case two && in.Op == "or" && src.IsImm && src.Imm == -1:
		return t.constant(after(w, i, at.reg)), nil
	case in.Op == "lea":
		return t.addressed(w, i, src)
	case two && in.Op == "add" && !src.IsMemory && src.Reg.General():
		return t.indexed(w, i, dst.Reg, src.Reg)
	case in.Op == "imul" && two && !src.IsImm:
		if factor, three := explicit(in, 2); three && factor.IsImm {
			return t.operand(w, i, src, 0)
		}
		return lostGiven("it was computed of two values"), nil
	case two && src.IsImm, in.Op == "inc", in.Op == "dec", in.Op == "neg", in.Op == "not":
		return Given{}, &spot{reg: at.reg, size: at.size} // moved on by a constant
	}
	return lostGiven(fmt.Sprintf("it was computed by %q", in.Text())), nil
}

// knownZero reports whether the last conditional jump before an instruction found a register to be 0. A compiler that knows so may write 0
// in place of the value.
func (t *resultSearch) knownZero(w *Course, i int, r x86.Reg) bool {
	if v, known := w.Steps[i].Registers.Get(image.Register(r)); !known || v != 0 {
		return false
	}
	for j := i - 1; j > 0; j-- {
		in, err := w.inst(t.memory, w.Steps[j].Registers.PC())
		switch {
		case err != nil || defines(in, r):
			return false
		case in.Flow == x86.FlowBranch:
			tested, err := w.inst(t.memory, w.Steps[j-1].Registers.PC())
			if err != nil || !comparesZero(tested) {
				return false
			}
			first, _ := explicit(tested, 0)
			return !first.IsMemory && first.Reg == r
		case in.Flow != x86.FlowNext && in.Flow != x86.FlowJump:
			return false
		}
	}
	return false
}

// choice notes an instruction that gave a value by a condition.
func (t *resultSearch) choice(i int) {
	if t.chosen < 0 {
		t.chosen = i
	}
}

func lostGiven(why string) Given {
	return Given{Kind: evidence.OriginUnknown, Text: "where it came from is not known: " + why}
}

// after is a register behind an instruction, 0 if the way ends there.
func after(w *Course, i int, r x86.Reg) uint64 {
	if i+1 >= len(w.Steps) {
		return 0
	}
	v, _ := w.Steps[i+1].Registers.Get(image.Register(r))
	return v
}

func (t *resultSearch) constant(v uint64) Given {
	g := Given{Kind: evidence.OriginConstant, Value: v}
	if t.isDataOrTLS(v) || t.process.ModuleAt(evidence.Addr(v)) != nil {
		g.Name = "&" + t.nameData(evidence.Addr(v), 1, false, 0).name
	}
	return g
}

// operand goes on with an operand that was moved, offset bytes into it.
func (t *resultSearch) operand(w *Course, i int, op *x86.Operand, offset int) (Given, *spot) {
	switch {
	case op == nil:
		return lostGiven("the instruction has no source"), nil
	case op.IsImm:
		v := uint64(op.Imm)
		if dst, ok := explicitOf(w, t, i, 0); ok && dst.Size == 4 {
			v = uint64(uint32(v))
		}
		return t.constant(v), nil
	case op.IsMemory:
		at, known := operandAddress(op, &w.Steps[i].Registers)
		if !known {
			return lostGiven("the address that it was loaded from is not known"), nil
		}
		return t.loaded(w, i, at+evidence.Addr(offset), min(max(op.Size-offset, 1), 8))
	case op.Reg.General():
		return Given{}, &spot{reg: op.Reg, size: max(op.Size, 1)}
	case vectorNumber(op.RegName) != "":
		return Given{}, &spot{vector: vectorNumber(op.RegName), offset: offset, size: 8}
	}
	return lostGiven("it was in no register that is followed"), nil
}

func explicitOf(w *Course, t *resultSearch, i, n int) (*x86.Operand, bool) {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return nil, false
	}
	return explicit(in, n)
}

// value is what an operand held.
func (t *resultSearch) value(w *Course, i int, op *x86.Operand) (uint64, bool) {
	switch {
	case op.IsImm:
		return uint64(op.Imm), true
	case op.IsMemory:
		return w.Steps[i].Read, w.Steps[i].HasRead
	case op.Reg.General():
		v, known := w.Steps[i].Registers.Get(image.Register(op.Reg))
		return extend(v, max(op.Size, 1), false), known
	}
	return 0, false
}

// loaded goes on with memory that an instruction read: with what the function, or one
// that called it, stored there before, or else the memory is where the value came from.
func (t *resultSearch) loaded(w *Course, i int, addr evidence.Addr, size int) (Given, *spot) {
	value := w.Steps[i].Read
	if in, _ := w.inst(t.memory, w.Steps[i].Registers.PC()); in != nil && in.Op != "pop" {
		if src, ok := explicit(in, 1); ok && src.IsMemory {
			if start, known := operandAddress(src, &w.Steps[i].Registers); known && start != addr {
				value = 0
				if v, err := readWord(t.memory, addr, size); err == nil {
					value = v
				}
			}
		}
	}
	at := &spot{memory: true, addr: addr, size: size, value: extend(value, size, false)}
	outer, before := w, i
	for outer != nil {
		if j := t.definition(outer, before, at); j >= 0 {
			if v, known := t.storedValue(outer, j, at); !known || v == at.value {
				if outer == w {
					return Given{}, at
				}
				break // the caller's own; its way goes on from there
			}
			return t.cell(w, i, at), nil
		}
		if outer = outer.Outer; outer != nil {
			before = len(outer.Steps) - 1
		}
	}
	if outer != nil {
		return Given{}, at
	}
	return t.cell(w, i, at), nil
}

// storedValue is what an instruction stored in the spot.
func (t *resultSearch) storedValue(w *Course, i int, at *spot) (uint64, bool) {
	in, _ := w.inst(t.memory, w.Steps[i].Registers.PC())
	from, ok := source(in)
	to := storeOperand(in)
	if !ok || to == nil || from.IsMemory || !from.IsImm && !from.Reg.General() {
		return 0, false
	}
	start, known := operandAddress(to, &w.Steps[i].Registers)
	v, has := t.value(w, i, from)
	if !known || !has || at.addr < start || at.addr-start >= 8 {
		return 0, false
	}
	return extend(v>>(8*(at.addr-start)), at.size, false), true
}

// cell is memory that the value was loaded from.
func (t *resultSearch) cell(w *Course, i int, at *spot) Given {
	g := Given{Kind: evidence.OriginCell, Cell: at.addr, Size: at.size, Value: at.value}
	s := t.sliceAt(w, i)
	if s == nil {
		return g
	}
	for n := range s.a.flow.insts[s.now].Operands {
		op := &s.a.flow.insts[s.now].Operands[n]
		if op.IsMemory && op.Access == evidence.Read {
			if e, ok := s.describePlace(s.addressOf(s.now, &op.Memory, 0), op.Size, s.now, 0); ok {
				g.Name, g.Type = e.text, typeName(e.typ)
			}
			break
		}
	}
	return g
}

// sliceAt opens the function as it was before an instruction of its way; nil if its
// code cannot be read so.
func (t *resultSearch) sliceAt(w *Course, i int) *backwardSlice {
	f := unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI, Registers: w.Steps[i].Registers, CFA: w.SP, Lookup: image.AtInstruction}
	in := &Input{Process: t.in.Process, Thread: t.in.Thread, Frames: []unwind.Frame{f}}
	s, err := t.newSlice(in, 0, f.Registers)
	if err != nil || s.now < 0 {
		return nil
	}
	return s
}

// addressed is for an address that was computed.
func (t *resultSearch) addressed(w *Course, i int, src *x86.Operand) (Given, *spot) {
	m := &src.Memory
	switch {
	case m.Base == x86.RIP || m.Absolute:
		return t.constant(m.Target), nil
	case m.Base.General() && m.Index.General():
		return t.indexed(w, i, m.Base, m.Index)
	case m.Index.General() && m.Base == x86.RegNone:
		return Given{}, &spot{reg: m.Index, size: 8}
	case m.Base.General() && m.Index == x86.RegNone && m.Base != x86.RSP && m.Base != x86.RBP:
		return Given{}, &spot{reg: m.Base, size: 8}
	}
	g := lostGiven("it was computed as an address")
	if at, known := operandAddress(src, &w.Steps[i].Registers); known {
		g.Value = uint64(at)
	}
	return g, nil
}

// indexed goes on with the one of two summands that is no place in the program's data:
// what an array in it was indexed by.
func (t *resultSearch) indexed(w *Course, i int, a, b x86.Reg) (Given, *spot) {
	static := func(r x86.Reg) bool {
		v, known := w.Steps[i].Registers.Get(image.Register(r))
		return known && (t.isDataOrTLS(v) || t.process.ModuleAt(evidence.Addr(v)) != nil)
	}
	switch x, y := static(a), static(b); {
	case x && !y:
		return Given{}, &spot{reg: b, size: 8}
	case y && !x:
		return Given{}, &spot{reg: a, size: 8}
	}
	return lostGiven("it was computed of two values"), nil
}

// gaveMemory is for an instruction that stored the value in memory.
func (t *resultSearch) gaveMemory(w *Course, i int, in *x86.Inst, at *spot) (Given, *spot) {
	to, from := storeOperand(in), (*x86.Operand)(nil)
	if op, ok := source(in); ok {
		from = op
	}
	start, known := evidence.Addr(0), false
	if to != nil {
		start, known = operandAddress(to, &w.Steps[i].Registers)
	}
	covers := known && start <= at.addr && at.addr+evidence.Addr(at.size) <= start+evidence.Addr(to.Size)
	if !covers || from == nil || to.Access == evidence.ReadWrite {
		return lostGiven(fmt.Sprintf("it was stored by %q", in.Text())), nil
	}
	if from.IsImm {
		return t.constant(at.value), nil
	}
	if in.Op != "push" && !strings.HasPrefix(in.Op, "mov") && !strings.HasPrefix(in.Op, "vmov") {
		return lostGiven(fmt.Sprintf("it was stored by %q", in.Text())), nil
	}
	offset := int(at.addr - start)
	if from.Reg.General() && offset > 0 {
		return lostGiven("it is a part of the stored value"), nil
	}
	return t.operand(w, i, from, offset)
}

// gaveVector is for an instruction that put the value into a vector register. The
// encodings with three operands (VEX) keep nothing of the first.
func (t *resultSearch) gaveVector(w *Course, i int, in *x86.Inst, at *spot) (Given, *spot) {
	low, _ := explicit(in, 0)
	high, ok := explicit(in, 1)
	if !ok || in.Flow == x86.FlowCall {
		return lostGiven("a call may have changed it"), nil
	}
	op, vex := strings.CutPrefix(in.Op, "v")
	if third, three := explicit(in, 2); vex && three && !third.IsImm {
		low, high = high, third
	}
	switch op {
	case "movdqa", "movdqu", "movaps", "movups", "movapd", "movupd", "lddqu", "movdqa64", "movdqu64", "movdqu8":
		return t.operand(w, i, high, at.offset)
	case "movq", "movd":
		if at.offset >= high.Size && !high.IsMemory || at.offset >= vectorHalf {
			return t.constant(0), nil
		}
		return t.operand(w, i, high, at.offset)
	case "punpcklqdq", "unpcklpd", "movlhps", "movhps", "movhpd", "pinsrq":
		if at.offset < vectorHalf {
			return Given{}, &spot{vector: vectorNumber(low.RegName), offset: at.offset, size: 8}
		}
		return t.operand(w, i, high, at.offset-vectorHalf)
	case "pxor", "xorps", "xorpd":
		if !high.IsMemory && low.RegName == high.RegName {
			return t.constant(0), nil
		}
	}
	return lostGiven(fmt.Sprintf("it was computed by %q", in.Text())), nil
}

// cameIn is for a value that was there when the outermost function began.
func (t *resultSearch) cameIn(w *Course, at *spot, outward int) Given {
	g := Given{Kind: evidence.OriginArgument, Course: w, Outward: outward, Register: image.Register(at.reg), Text: "it came in from the caller"}
	switch {
	case at.memory || at.vector != "":
		g.Kind, g.Text = evidence.OriginUnknown, "where it came from is not known: it was there before the function began"
	case !slices.Contains(x86.ArgumentRegisters[:], at.reg):
		g.Kind, g.Text = evidence.OriginUnknown, fmt.Sprintf("where it came from is not known: nothing set %s", at.reg)
	case len(w.Steps) > 0:
		g.Value, _ = w.Steps[0].Registers.Get(image.Register(at.reg))
	}
	return g
}
