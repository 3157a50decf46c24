package staticscan

import (
	"strings"

	"diagnose/image/x86"
)

// maxBeforeVector is how far before its use a vector register's value is looked for:
// compilers put two words together right before they store them.
const maxBeforeVector = 32

// inVector is the word of size bytes that lies offset bytes into a vector register before
// the instruction at pos, as far as the instructions right before it tell; nil: they do
// not.
func (s *backwardSlice) inVector(pos int, register string, offset, size int) *node {
	insts := s.a.flow.insts
	for i := pos - 1; i >= 0 && i >= pos-maxBeforeVector; i-- {
		in := &insts[i]
		if in.Flow != x86.FlowNext {
			return nil
		}
		to, ok := explicit(in, 0)
		if !ok || to.IsMemory || to.IsImm || vectorNumber(to.RegName) != vectorNumber(register) || !to.Access.Writes() {
			continue
		}
		return s.vectorWord(i, in, offset, size)
	}
	return nil
}

// vectorNumber tells a vector register, of which narrower ones are parts: "0" of
// ymm0 and of xmm0; "" of others.
func vectorNumber(name string) string {
	if len(name) > 3 && strings.HasSuffix(name[:3], "mm") {
		return name[3:]
	}
	return ""
}

const vectorHalf = 8

// vectorWord is a word of what an instruction put into a vector register. The
// encodings with three operands (VEX) keep nothing of the first.
func (s *backwardSlice) vectorWord(i int, in *x86.Inst, offset, size int) *node {
	low, _ := explicit(in, 0)
	high, ok := explicit(in, 1)
	if !ok {
		return nil
	}
	op, vex := strings.CutPrefix(in.Op, "v")
	if third, three := explicit(in, 2); vex && three && !third.IsImm {
		low, high = high, third
	}
	switch op {
	case "movdqa", "movdqu", "movaps", "movups", "movapd", "movupd", "lddqu", "movdqa64", "movdqu64", "movdqu8":
		return s.vectorOperand(i, high, offset, size)
	case "movq", "movd":
		if offset >= high.Size {
			return constNode(0, i)
		}
		return s.vectorOperand(i, high, offset, size)
	case "punpcklqdq", "unpcklpd", "movlhps", "movhps", "movhpd", "pinsrq":
		if offset < vectorHalf {
			return s.vectorOperand(i, low, offset, size)
		}
		return s.vectorOperand(i, high, offset-vectorHalf, size)
	case "pxor", "xorps", "xorpd":
		if !low.IsMemory && !high.IsMemory && low.RegName == high.RegName {
			return constNode(0, i)
		}
	}
	return nil
}

// vectorOperand is the word at an offset of an operand.
func (s *backwardSlice) vectorOperand(i int, op *x86.Operand, offset, size int) *node {
	switch {
	case op.IsMemory:
		m := op.Memory
		m.Disp += int64(offset)
		if m.Base == x86.RIP || m.Absolute {
			m.Target += uint64(offset)
		}
		return s.load(i, m, min(max(op.Size-offset, 1), size), false, 0)
	case op.IsImm:
		return nil
	case op.Reg.General():
		return s.register(i, op.Reg, 0)
	}
	return s.inVector(i, op.RegName, offset, size)
}
