package staticscan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/x86"
	"diagnose/unwind"
)

// Taken is an instruction that a thread executed.
type Taken struct {
	// Registers are those before it.
	Registers image.Registers
	// Read is what the first memory operand held that it reads, up to 8 bytes; HasRead
	// says that there was one that could be read.
	Read    uint64
	HasRead bool
}

// Course is what a thread executed of a function, in order, the calls that it made as one
// instruction each.
type Course struct {
	Steps []Taken
	// SP is the stack pointer before the call, and behind the return.
	SP evidence.Addr
	// Outer is the way of the caller up to the call, with the call as the last; nil: not
	// known.
	Outer *Course
	// Jumped: the last instruction is a jump to a function that was passed as a whole.
	Jumped bool
	code   map[evidence.Addr]*x86.Inst
}

// Take notes the instruction that a thread with these registers is about to execute.
func (w *Course) Take(m image.Memory, regs *image.Registers) error {
	in, err := w.inst(m, regs.PC())
	if err != nil {
		return err
	}
	t := Taken{Registers: *regs}
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory || op.Access != evidence.Read && op.Access != evidence.ReadWrite || op.Size < 1 {
			continue
		}
		var b [8]byte
		if at, known := operandAddress(op, regs); known {
			size := min(op.Size, len(b))
			if k, err := m.ReadMemory(at, b[:size]); err == nil && k == size {
				t.Read, t.HasRead = binary.LittleEndian.Uint64(b[:]), true
			}
		}
		break
	}
	w.Steps = append(w.Steps, t)
	return nil
}

func (w *Course) inst(m image.Memory, pc evidence.Addr) (*x86.Inst, error) {
	if in := w.code[pc]; in != nil {
		return in, nil
	}
	const longest = 15
	code := make([]byte, longest)
	n, _ := m.ReadMemory(pc, code) // the mapping may end behind the instruction
	in, err := x86.Decode(code[:n], uint64(pc))
	if err != nil {
		return nil, fmt.Errorf("staticscan: %w", err)
	}
	if w.code == nil {
		w.code = map[evidence.Addr]*x86.Inst{}
	}
	w.code[pc] = &in
	return &in, nil
}

// operandAddress is where a memory operand lies.
func operandAddress(op *x86.Operand, regs *image.Registers) (evidence.Addr, bool) {
	at, known := op.Memory.Address(func(r x86.Reg) (uint64, bool) { return regs.Get(image.Register(r)) })
	switch op.Memory.Segment {
	case x86.SegFS:
		at += uint64(regs.FSBase)
	case x86.SegGS:
		at += uint64(regs.GSBase)
	}
	return evidence.Addr(at), known
}

// Given is where a value came from that a thread had on its way through a function.
type Given struct {
	// Kind is OriginConstant, OriginCell, OriginResult, OriginArgument or OriginUnknown;
	// Text is it as a sentence without a final stop.
	Kind evidence.OriginKind
	Text string
	// Course and Step are the instruction that gave it, Outward how many callers away from
	// the function asked about; Site is its place, of inlined code the program's own.
	Course  *Course
	Step    int
	Outward int
	Site    evidence.Site
	// Value is what it gave. Of a cell, Cell and Size are the memory, Name and Type what
	// the program calls it; of a constant Name is what it is the address of; of an
	// argument Register is where it came in.
	Value      uint64
	Cell       evidence.Addr
	Size       int
	Name, Type string
	Register   image.Register
	// Tested is the place of a condition that found the value to be 0 before it was
	// handed on; Again says that the instruction had given other values before.
	Tested *Condition
	Again  bool
}

// Condition is a conditional jump that was executed.
type Condition struct {
	Step int
	Site evidence.Site
	// Text says what was looked at, with its values: "i was 0"; empty: not known.
	Text string
	// Inlined: it is in code of a library, at Site inlined into the program's.
	Inlined bool
}

// ResultOf goes back from what a function has returned in a register. The process
// stands behind the return.
func ResultOf(in Input, w *Course, r image.Register) Given {
	t := &taken{world: newWorld(&in), in: &in}
	g := t.follow(w, len(w.Steps), spot{reg: x86.Reg(r), size: 8})
	t.judge(w, &g)
	return g
}

// HeldBy goes back from what a register held before the last instruction of a way.
func HeldBy(in Input, w *Course, r image.Register) Given {
	t := &taken{world: newWorld(&in), in: &in}
	return t.follow(w, len(w.Steps)-1, spot{reg: x86.Reg(r), size: 8})
}

// TestedLast goes back from what the last conditional jump of a way, before its last
// instruction, was about; ok is false if it compared nothing with a constant.
func TestedLast(in Input, w *Course) (g Given, ok bool) {
	return (&taken{world: newWorld(&in), in: &in}).tested(w)
}

func (t *taken) tested(w *Course) (g Given, ok bool) {
	i := len(w.Steps) - 1
	for i >= 0 && t.flowAt(w, i) != x86.FlowBranch {
		i--
	}
	for i >= 0 {
		t.chosen = -1
		if g, ok = t.comparedBefore(w, i); !ok || g.Kind != evidence.OriginConstant && g.Kind != evidence.OriginUnknown {
			return g, ok
		}
		if t.chosen >= i {
			break
		}
		i = t.chosen // it was one of two by another condition
	}
	return g, ok
}

func (t *taken) flowAt(w *Course, i int) x86.Flow {
	inst, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return x86.FlowNext
	}
	return inst.Flow
}

// comparedBefore goes back from what was compared with a constant right before an
// instruction.
func (t *taken) comparedBefore(w *Course, i int) (g Given, ok bool) {
	const near = 6
	for j := i - 1; j >= max(i-near, 0); j-- {
		inst, err := w.inst(t.memory, w.Steps[j].Registers.PC())
		if err != nil || inst.Flow != x86.FlowNext {
			return g, false
		}
		if inst.Op != "cmp" && inst.Op != "test" {
			continue
		}
		first, _ := explicit(inst, 0)
		second, two := explicit(inst, 1)
		if !two || !second.IsImm && !sameRegister(first, second) || guardCheck(inst) {
			return g, false
		}
		at, known := spot{reg: first.Reg, size: 8}, first.Reg.General()
		if first.IsMemory {
			var addr evidence.Addr
			addr, known = operandAddress(first, &w.Steps[j].Registers)
			at = spot{memory: true, addr: addr, size: min(first.Size, 8), value: w.Steps[j].Read}
			if known && t.definition(w, j, &at) < 0 {
				g := t.cell(w, j, &at)
				g.Course, g.Step, g.Site = w, j, t.ownSite(w.Steps[j].Registers.PC())
				return g, true
			}
		}
		if !known {
			return g, false
		}
		return t.follow(w, j, at), true
	}
	return g, false
}

// LedTo is the last conditional jump of the program's own before an instruction of a way
// without which the thread might have left the function by another one; nil if none is
// known. The check of the stack guard counts for none.
func LedTo(in Input, w *Course, step int) *Condition {
	const most = 16 // conditions that decide nothing
	t := &taken{world: newWorld(&in), in: &in}
	looked := 0
	for i := min(step, len(w.Steps)) - 1; i >= 0 && looked < most; i-- {
		c := t.condition(w, i)
		if c == nil {
			continue
		}
		if looked++; t.decides(w, i, step) {
			return c
		}
	}
	return nil
}

// LastCondition is the last conditional jump of the program's own behind an instruction
// of a way; nil if there was none.
func LastCondition(in Input, w *Course, step int) *Condition {
	t := &taken{world: newWorld(&in), in: &in}
	for i := len(w.Steps) - 1; i > step; i-- {
		if c := t.condition(w, i); c != nil {
			return c
		}
	}
	return nil
}

// decides reports whether the other way from a conditional jump may have left the
// function without the instruction at step.
func (t *taken) decides(w *Course, branch, step int) bool {
	a, err := t.analyse(w.Steps[branch].Registers.PC())
	if err != nil || branch+1 >= len(w.Steps) {
		return false
	}
	g := a.flow.graph
	from, ok := g.index(uint64(w.Steps[branch].Registers.PC()))
	went, also := g.index(uint64(w.Steps[branch+1].Registers.PC()))
	if !ok || !also {
		return false
	}
	avoided := -1
	if step < len(w.Steps) {
		if i, inside := g.index(uint64(w.Steps[step].Registers.PC())); inside {
			avoided = g.blockOf[i]
		}
	}
	seen := map[int]bool{}
	var leaves func(b int) bool
	leaves = func(b int) bool {
		if b == avoided || seen[b] {
			return false
		}
		seen[b] = true
		last := &g.insts[g.blocks[b].end-1]
		if last.Flow == x86.FlowReturn || last.Flow == x86.FlowJump && !g.inside(last) {
			return true
		}
		return slices.ContainsFunc(g.blocks[b].next, leaves)
	}
	return slices.ContainsFunc(g.blocks[g.blockOf[from]].next, func(b int) bool { return b != g.blockOf[went] && leaves(b) })
}

// taken is the work of one ResultOf.
type taken struct {
	*world
	in *Input
	// chosen is the first instruction on the way back that gave one of two values by a
	// condition; -1: there was none.
	chosen int
}

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

func (t *taken) follow(w *Course, before int, at spot) Given {
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
func (t *taken) definition(w *Course, before int, at *spot) int {
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
			if to, ok := explicit(in, 0); ok && !to.IsMemory && !to.IsImm && vectorNumber(to.RegName) == at.vector && writes(to.Access) {
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
func (t *taken) stores(w *Course, i int, in *x86.Inst, at *spot) bool {
	if in.Flow == x86.FlowCall || in.Flow == x86.FlowSyscall {
		return false
	}
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory || !writes(op.Access) || op.Size < 1 {
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
func (t *taken) gave(w *Course, i int, at *spot) (Given, *spot) {
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
		return lostGiven("it was one of two equal values"), nil
	case two && in.Op == "xor" && sameRegister(dst, src), two && in.Op == "sub" && sameRegister(dst, src), two && in.Op == "and" && src.IsImm && src.Imm == 0:
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

// choice notes an instruction that gave a value by a condition.
func (t *taken) choice(i int) {
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

func (t *taken) constant(v uint64) Given {
	g := Given{Kind: evidence.OriginConstant, Value: v}
	if t.isDataOrTLS(v) || t.process.ModuleAt(evidence.Addr(v)) != nil {
		g.Name = "&" + t.nameData(evidence.Addr(v), 1, false, 0).name
	}
	return g
}

// operand goes on with an operand that was moved, offset bytes into it.
func (t *taken) operand(w *Course, i int, op *x86.Operand, offset int) (Given, *spot) {
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

func explicitOf(w *Course, t *taken, i, n int) (*x86.Operand, bool) {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return nil, false
	}
	return explicit(in, n)
}

// value is what an operand held.
func (t *taken) value(w *Course, i int, op *x86.Operand) (uint64, bool) {
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
func (t *taken) loaded(w *Course, i int, addr evidence.Addr, size int) (Given, *spot) {
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
func (t *taken) storedValue(w *Course, i int, at *spot) (uint64, bool) {
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
func (t *taken) cell(w *Course, i int, at *spot) Given {
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
func (t *taken) sliceAt(w *Course, i int) *slice {
	f := unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI, Registers: w.Steps[i].Registers, CFA: w.SP, Lookup: image.AtInstruction}
	in := &Input{Process: t.in.Process, Thread: t.in.Thread, Frames: []unwind.Frame{f}}
	s, err := t.newSlice(in, 0, f.Registers)
	if err != nil || s.now < 0 {
		return nil
	}
	return s
}

// addressed is for an address that was computed.
func (t *taken) addressed(w *Course, i int, src *x86.Operand) (Given, *spot) {
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
func (t *taken) indexed(w *Course, i int, a, b x86.Reg) (Given, *spot) {
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
func (t *taken) gaveMemory(w *Course, i int, in *x86.Inst, at *spot) (Given, *spot) {
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
		return lostGiven("it is a part of what was stored"), nil
	}
	return t.operand(w, i, from, offset)
}

// gaveVector is for an instruction that put the value into a vector register. The
// encodings with three operands (VEX) keep nothing of the first.
func (t *taken) gaveVector(w *Course, i int, in *x86.Inst, at *spot) (Given, *spot) {
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
func (t *taken) cameIn(w *Course, at *spot, outward int) Given {
	g := Given{Kind: evidence.OriginArgument, Course: w, Outward: outward, Register: image.Register(at.reg), Text: "it came in from the caller"}
	switch {
	case at.memory || at.vector != "":
		g.Kind, g.Text = evidence.OriginUnknown, "where it came from is not known: it was there before the function began"
	case !slices.Contains(argumentRegisters[:], at.reg):
		g.Kind, g.Text = evidence.OriginUnknown, fmt.Sprintf("where it came from is not known: nothing set %s", at.reg)
	case len(w.Steps) > 0:
		g.Value, _ = w.Steps[0].Registers.Get(image.Register(at.reg))
	}
	return g
}

// judge finds a condition that has found a loaded 0 to be one.
func (t *taken) judge(w *Course, g *Given) {
	if g.Kind != evidence.OriginCell || g.Value != 0 || g.Course != w {
		return
	}
	pc := w.Steps[g.Step].Registers.PC()
	for i := range g.Step {
		g.Again = g.Again || w.Steps[i].Registers.PC() == pc
	}
	for i := g.Step; i+1 < len(w.Steps); i++ {
		if !t.testsZero(w, i, g.Step) {
			continue
		}
		for j := i + 1; j < min(i+4, len(w.Steps)); j++ {
			if in, _ := w.inst(t.memory, w.Steps[j].Registers.PC()); in != nil && in.Flow == x86.FlowBranch {
				g.Tested = t.condition(w, j)
				return
			}
		}
	}
}

// testsZero reports whether an instruction compares what another one loaded with 0.
func (t *taken) testsZero(w *Course, i, load int) bool {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return false
	}
	first, ok := explicit(in, 0)
	second, two := explicit(in, 1)
	if !ok || !two || in.Op != "test" && in.Op != "cmp" {
		return false
	}
	zero := in.Op == "test" && sameRegister(first, second) || in.Op == "cmp" && second.IsImm && second.Imm == 0
	switch {
	case !zero:
		return false
	case first.IsMemory:
		at, known := operandAddress(first, &w.Steps[i].Registers)
		if !known {
			return false
		}
		if i == load {
			return true
		}
		g, next := t.loaded(w, i, at, first.Size)
		if next == nil {
			loadedAt, also := t.loadAddress(w, load)
			return g.Kind == evidence.OriginCell && also && loadedAt == at
		}
		return t.from(w, i, *next, load)
	case first.Reg.General():
		return t.from(w, i, spot{reg: first.Reg, size: 8}, load)
	}
	return false
}

func (t *taken) loadAddress(w *Course, i int) (evidence.Addr, bool) {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return 0, false
	}
	for n := range in.Operands {
		if op := &in.Operands[n]; op.IsMemory && op.Access == evidence.Read {
			return operandAddress(op, &w.Steps[i].Registers)
		}
	}
	return 0, false
}

// from reports whether the value of a spot is what an instruction loaded.
func (t *taken) from(w *Course, before int, at spot, load int) bool {
	for range mostMoves {
		i := t.definition(w, before, &at)
		if i < 0 || i < load {
			return false
		}
		if i == load {
			return true
		}
		_, next := t.gave(w, i, &at)
		if next == nil {
			return false
		}
		at, before = *next, i
	}
	return false
}

// condition is the conditional jump at an instruction of the program's own, nil if
// there is none.
func (t *taken) condition(w *Course, i int) *Condition {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil || in.Flow != x86.FlowBranch {
		return nil
	}
	c := &Condition{Step: i, Site: t.ownSite(w.Steps[i].Registers.PC())}
	if c.Site.Line == 0 || image.LibraryCode(&c.Site) {
		return nil
	}
	c.Inlined = t.inLibrary(w.Steps[i].Registers.PC())
	const near = 6
	for j := i - 1; j >= max(i-near, 0); j-- {
		before, err := w.inst(t.memory, w.Steps[j].Registers.PC())
		if err != nil {
			break
		}
		if before.Op == "cmp" || before.Op == "test" || before.Op == "sub" {
			if guardCheck(before) {
				return nil
			}
			if before.Op != "sub" && !c.Inlined {
				c.Text = t.compared(w, j, before)
			}
			break
		}
		if before.Flow != x86.FlowNext || !strings.HasPrefix(before.Op, "mov") && before.Op != "lea" && before.Op != "nop" {
			break
		}
	}
	return c
}

// guardCheck reports whether an instruction compares with the stack guard.
func guardCheck(in *x86.Inst) bool {
	for n := range in.Operands {
		if op := &in.Operands[n]; op.IsMemory && op.Memory.Segment == x86.SegFS && op.Memory.Disp == 0x28 {
			return true
		}
	}
	return false
}

// compared says what a comparison looked at.
func (t *taken) compared(w *Course, i int, in *x86.Inst) string {
	s := t.sliceAt(w, i)
	first, ok := explicit(in, 0)
	second, two := explicit(in, 1)
	if s == nil || !ok || !two {
		return ""
	}
	left, known := t.operandText(s, w, i, first)
	if !known || left == "" {
		return ""
	}
	switch {
	case in.Op == "test" && sameRegister(first, second), in.Op == "cmp" && second.IsImm && second.Imm == 0:
		return left
	case in.Op == "cmp":
		right, known := t.operandText(s, w, i, second)
		switch {
		case !known || right == "":
			return left
		case second.IsImm:
			return fmt.Sprintf("%s, compared with %d", left, second.Imm)
		}
		return left + " and " + right
	}
	return ""
}

// operandText is an operand with its value: "i was 0x0".
func (t *taken) operandText(s *slice, w *Course, i int, op *x86.Operand) (string, bool) {
	v, known := t.value(w, i, op)
	if !known {
		return "", false
	}
	if op.IsImm {
		return fmt.Sprint(op.Imm), true
	}
	var e expression
	ok := false
	switch {
	case op.IsMemory:
		e, ok = s.describePlace(s.addressOf(s.now, &op.Memory, 0), op.Size, s.now, 0)
	case op.Reg.General():
		e, ok = s.describe(s.register(s.now, op.Reg, 0), 0)
	}
	if !ok || e.text == "" {
		return "", true
	}
	if e.typ == nil && op.Size <= 4 {
		return fmt.Sprintf("%s was %d", e.text, int32(v)), true
	}
	if v == 0 {
		return e.text + " was 0", true
	}
	return fmt.Sprintf("%s was %s", e.text, amount(v, e.typ)), true
}

// ownSite is a place in the program's own code, of library code that was inlined the
// place that it was inlined into.
func (t *taken) ownSite(pc evidence.Addr) evidence.Site {
	calls := t.process.Symbolize(pc, image.AtInstruction)
	for _, c := range calls {
		if c.Site.Line != 0 && !image.LibraryCode(&c.Site) {
			return c.Site
		}
	}
	if len(calls) > 0 {
		return calls[0].Site
	}
	return evidence.Site{PC: pc}
}

// inLibrary reports whether a place is code of a library, wherever it was inlined.
func (t *taken) inLibrary(pc evidence.Addr) bool {
	calls := t.process.Symbolize(pc, image.AtInstruction)
	return len(calls) > 0 && image.LibraryCode(&calls[0].Site)
}

// SameFunction reports whether two places are of one function's code.
func SameFunction(p *image.Process, a, b evidence.Addr) bool {
	f, err := functionAt(p, a)
	return err == nil && f.contains(b)
}

// Passed goes back from what a register held at the innermost frame's instruction.
func Passed(in Input, r image.Register) (Blame, error) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Blame{}, errors.New(notKnown + "no process or no frames")
	}
	t := &trail{in: &in, world: newWorld(&in), hops: defaultHops}
	t.blame.Role = RoleValue
	s, err := t.newSlice(&in, 0, in.Frames[0].Registers)
	if err != nil {
		return Blame{}, fmt.Errorf(notKnown+"%w", err)
	}
	if s.now < 0 {
		return Blame{}, fmt.Errorf(notKnown+"the code before %v does not decode to it", in.Frames[0].PC())
	}
	t.place(s)
	t.named = true
	n := s.register(s.now, x86.Reg(r), 0)
	t.describeValue(s, n, RoleValue)
	t.walkBack(s, n)
	return t.blame, nil
}
