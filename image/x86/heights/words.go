package heights

import (
	"slices"

	"diagnose/image/x86"
)

// state has the known positions before an instruction.
type state struct {
	registers Positions
	// words of the frame hold positions. The slice is never changed in place, as states share it.
	words []savedWord
}

// savedWord is a word of the frame, by its offset from the CFA, that holds a position.
type savedWord struct {
	at    int64
	value Position
}

// mostWords bounds the words of a state; the oldest are forgotten.
const mostWords = 32

// common are the words in which two states agree.
func common(a, b []savedWord) []savedWord {
	if len(a) == 0 {
		return a
	}
	missing := func(w savedWord) bool { return !slices.Contains(b, w) }
	if !slices.ContainsFunc(a, missing) {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), missing)
}

// step returns the state after an instruction.
func (s *state) step(inst *x86.Inst) state {
	after := state{registers: step(s.registers, inst), words: s.words}
	if inst.Flow == x86.FlowCall {
		return after
	}
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && o.Access.Writes() {
			after.words = s.written(after.words, o)
		}
	}
	if inst.Op != "mov" || len(inst.Operands) != 2 {
		return after
	}
	to, from := &inst.Operands[0], &inst.Operands[1]
	if at, ok := s.wordOf(to); ok && WholeRegister(from) && s.registers[from.Reg].Origin != Unknown {
		words := append(slices.Clone(after.words), savedWord{at, s.registers[from.Reg]})
		after.words = words[max(0, len(words)-mostWords):]
	}
	if at, ok := s.wordOf(from); ok && WholeRegister(to) {
		for _, w := range s.words {
			if w.at == at {
				after.registers[to.Reg] = w.value
			}
		}
	}
	return after
}

// wordOf is the offset from the CFA of an operand that is a word of the frame at a fixed place.
func (s *state) wordOf(o *x86.Operand) (int64, bool) {
	m := &o.Memory
	if !o.IsMemory || o.Size != 8 || !m.Base.General() || m.Index != x86.RegNone || m.Segment != x86.SegNone || m.Addr32 {
		return 0, false
	}
	p := Moved(s.registers[m.Base], m.Disp)
	return p.Offset, p.Origin == FromCFA
}

// written are the words without those that a store overwrites. A store at an address that is not known, or with an index,
// is into an object of the program, and no compiler keeps other words there.
func (s *state) written(words []savedWord, o *x86.Operand) []savedWord {
	m := &o.Memory
	if len(words) == 0 || !m.Base.General() || m.Index != x86.RegNone {
		return words
	}
	p := Moved(s.registers[m.Base], m.Disp)
	if p.Origin != FromCFA {
		return words
	}
	if o.Size == 0 || o.Repeated {
		return nil
	}
	overlaps := func(w savedWord) bool { return w.at+8 > p.Offset && w.at < p.Offset+int64(o.Size) }
	if !slices.ContainsFunc(words, overlaps) {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), overlaps)
}
