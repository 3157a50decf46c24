package staticscan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
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
	// Equal: Value is one of two values that were equal, and which one is not known.
	Equal bool
}

// Condition is a conditional jump that was executed.
type Condition struct {
	Step int
	Site evidence.Site
	// Text says what was looked at, with its values: "i was 0"; empty: not known.
	Text string
	// Inlined: it is in code of a library, at Site inlined into the program's.
	Inlined bool
	// Zero is the argument register in which a number came into the function that was looked at and was 0; by its type it is no
	// pointer. RIP: it was none, or no argument.
	Zero image.Register
}

// ResultOf goes back from what a function has returned in a register. The process
// stands behind the return.
func ResultOf(in Input, w *Course, r image.Register) Given {
	t := &resultSearch{processView: newWorld(&in), in: &in}
	g := t.follow(w, len(w.Steps), spot{reg: x86.Reg(r), size: 8})
	t.judge(w, &g)
	return g
}

// HeldBy goes back from what a register held before the last instruction of a way.
func HeldBy(in Input, w *Course, r image.Register) Given {
	t := &resultSearch{processView: newWorld(&in), in: &in}
	return t.follow(w, len(w.Steps)-1, spot{reg: x86.Reg(r), size: 8})
}

// TestedLast goes back from what the last conditional jump of a way, before its last
// instruction, was about; ok is false if it compared nothing with a constant.
func TestedLast(in Input, w *Course) (g Given, ok bool) {
	return (&resultSearch{processView: newWorld(&in), in: &in}).tested(w)
}

func (t *resultSearch) tested(w *Course) (g Given, ok bool) {
	i := len(w.Steps) - 1
	for i >= 0 && t.flowAt(w, i) != x86.FlowBranch {
		i--
	}
	return t.testedBy(w, i)
}

// DecidedBy is the condition that decided that a thread came to an instruction of a way,
// as LedTo finds it, and goes back from what that tested. c is nil if there is none; ok is
// false if it compared nothing with a constant.
func DecidedBy(in Input, w *Course, step int) (c *Condition, g Given, ok bool) {
	if c = LedTo(in, w, step); c == nil {
		return nil, g, false
	}
	g, ok = (&resultSearch{processView: newWorld(&in), in: &in}).testedBy(w, c.Step)
	return c, g, ok
}

// ChosenBy goes back from what was compared with a constant right before an instruction
// that made a value of the flags (setcc, cmovcc); ok is false for others.
func ChosenBy(in Input, w *Course, step int) (g Given, ok bool) {
	t := &resultSearch{processView: newWorld(&in), in: &in, chosen: -1}
	if step < 0 || step >= len(w.Steps) {
		return g, false
	}
	inst, err := w.inst(t.memory, w.Steps[step].Registers.PC())
	if err != nil || !strings.HasPrefix(inst.Op, "set") && !strings.HasPrefix(inst.Op, "cmov") {
		return g, false
	}
	return t.comparedBefore(w, step)
}

// testedBy goes back from what the conditional jump at an instruction was about.
func (t *resultSearch) testedBy(w *Course, i int) (g Given, ok bool) {
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

func (t *resultSearch) flowAt(w *Course, i int) x86.Flow {
	inst, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return x86.FlowNext
	}
	return inst.Flow
}

// comparedBefore goes back from what was compared with a constant right before an
// instruction.
func (t *resultSearch) comparedBefore(w *Course, i int) (g Given, ok bool) {
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
	t := &resultSearch{processView: newWorld(&in), in: &in}
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
	t := &resultSearch{processView: newWorld(&in), in: &in}
	for i := len(w.Steps) - 1; i > step; i-- {
		if c := t.condition(w, i); c != nil {
			return c
		}
	}
	return nil
}

// decides reports whether the other way from a conditional jump may have left the
// function without the instruction at step.
func (t *resultSearch) decides(w *Course, branch, step int) bool {
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

// resultSearch is the work of one ResultOf.
type resultSearch struct {
	*processView
	in *Input
	// chosen is the first instruction on the way back that gave one of two values by a
	// condition; -1: there was none.
	chosen int
}

// ownSite is a place in the program's own code, of library code that was inlined the
// place that it was inlined into.
func (t *resultSearch) ownSite(pc evidence.Addr) evidence.Site {
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
func (t *resultSearch) inLibrary(pc evidence.Addr) bool {
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
	t := &originSearch{in: &in, processView: newWorld(&in), hops: defaultHops}
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
