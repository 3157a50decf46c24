package staticscan

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// judge finds a condition that has found a loaded 0, or one of two, to be one.
func (t *resultSearch) judge(w *Course, g *Given) {
	if g.Kind != evidence.OriginCell && !g.Equal || g.Value != 0 || g.Course != w {
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

// comparesZero reports whether an instruction compares its first operand with 0.
func comparesZero(in *x86.Inst) bool {
	first, ok := explicit(in, 0)
	second, two := explicit(in, 1)
	return ok && two && (in.Op == "test" && sameRegister(first, second) || in.Op == "cmp" && second.IsImm && second.Imm == 0)
}

// testsZero reports whether an instruction compares what another one loaded with 0.
func (t *resultSearch) testsZero(w *Course, i, load int) bool {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil {
		return false
	}
	first, _ := explicit(in, 0)
	switch {
	case !comparesZero(in):
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

func (t *resultSearch) loadAddress(w *Course, i int) (evidence.Addr, bool) {
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
func (t *resultSearch) from(w *Course, before int, at spot, load int) bool {
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
func (t *resultSearch) condition(w *Course, i int) *Condition {
	in, err := w.inst(t.memory, w.Steps[i].Registers.PC())
	if err != nil || in.Flow != x86.FlowBranch {
		return nil
	}
	c := &Condition{Step: i, Site: t.ownSite(w.Steps[i].Registers.PC()), Zero: image.RIP}
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
				c.Zero = t.foundZero(w, j, before)
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
func (t *resultSearch) compared(w *Course, i int, in *x86.Inst) string {
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
	case comparesZero(in):
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

// foundZero is the argument register of a number that a comparison with 0 looked at, and that was 0; RIP: there is none.
func (t *resultSearch) foundZero(w *Course, i int, in *x86.Inst) image.Register {
	if !comparesZero(in) {
		return image.RIP
	}
	first, _ := explicit(in, 0)
	s := t.sliceAt(w, i)
	if v, known := t.value(w, i, first); s == nil || !known || v != 0 {
		return image.RIP
	}
	e, ok := t.operandExpression(s, first)
	if !ok || e.typ == nil || e.typ.Kind() != debuginfo.KindInt && e.typ.Kind() != debuginfo.KindUint {
		return image.RIP
	}
	n := s.operandAt(s.now, first)
	for _, r := range x86.ArgumentRegisters {
		if n != nil && s.madeOf(n, r, 0) {
			return image.Register(r)
		}
	}
	return image.RIP
}

// ArgumentMadeOf reports whether the nth integer argument, from 0, of the call at a frame's place was made of an argument of the
// function that calls: the one that it was entered with in a register.
func ArgumentMadeOf(in Input, frame, n int, entered image.Register) bool {
	if !in.hasArgument(frame, n) {
		return false
	}
	s, err := newWorld(&in).newSlice(&in, frame, in.Frames[frame].Registers)
	return err == nil && s.now >= 0 && s.madeOf(s.register(s.now, x86.ArgumentRegisters[n], 0), x86.Reg(entered), 0)
}

// madeOf reports whether a value was made of what came into the function in a register.
func (s *backwardSlice) madeOf(n *node, entered x86.Reg, depth int) bool {
	if n == nil || depth > maxDepth {
		return false
	}
	if n.op == opEntry {
		return n.reg == entered
	}
	if n.op == opLoad {
		return s.madeOf(n.stored, entered, depth+1)
	}
	return s.madeOf(n.a, entered, depth+1) || s.madeOf(n.b, entered, depth+1)
}

// operandExpression is what the program calls an operand.
func (t *resultSearch) operandExpression(s *backwardSlice, op *x86.Operand) (e expression, ok bool) {
	switch {
	case op.IsMemory:
		return s.describePlace(s.addressOf(s.now, &op.Memory, 0), op.Size, s.now, 0)
	case op.Reg.General():
		return s.describe(s.register(s.now, op.Reg, 0), 0)
	}
	return e, false
}

// operandText is an operand with its value: "i was 0x0".
func (t *resultSearch) operandText(s *backwardSlice, w *Course, i int, op *x86.Operand) (string, bool) {
	v, known := t.value(w, i, op)
	if !known {
		return "", false
	}
	if op.IsImm {
		return fmt.Sprint(op.Imm), true
	}
	e, ok := t.operandExpression(s, op)
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
