package sites

import (
	"slices"
	"strings"

	"diagnose/image/x86"
)

// Loads that acquire and stores that release are plain moves on this processor. Which of them
// synchronise is not in the code, so accesses that are likely to are ordered with the atomic
// instructions: of static words on the line of one that is locked; in a function with a locked instruction those
// near the same base register; and all those of a function that has a pause instruction, which only
// loops that wait have.

const lineSize = 64

// base is what addresses near each other are made of: registers. Operands on the stack, and with a
// segment, have none.
type base struct{ base, index x86.Reg }

func baseOf(m *x86.Memory) (base, bool) {
	if m.Segment != x86.SegNone || m.Absolute || m.Base == x86.RSP || m.Base == x86.RIP {
		return base{}, false
	}
	return base{m.Base, m.Index}, true
}

// nearby are the operands of the locked instructions of a function, and whether it has a pause.
type nearby struct {
	at    map[base][]int64 // displacements
	waits bool
}

// mostNearby bounds the displacements of a base.
const mostNearby = 64

func (n *nearby) add(b base, disp int64) {
	if list := n.at[b]; len(list) < mostNearby && !slices.Contains(list, disp) {
		n.at[b] = append(list, disp)
	}
}

func (n *nearby) has(m *x86.Memory) bool {
	b, ok := baseOf(m)
	if !ok {
		return false
	}
	return n.waits || slices.ContainsFunc(n.at[b], func(d int64) bool { return m.Disp-d < lineSize && d-m.Disp < lineSize })
}

// addPlain adds the plain accesses that are ordered.
func (s *atomicSearch) addPlain() {
	locked := slices.Clone(s.atomics)
	static := map[uint64]bool{} // lines
	for _, a := range locked {
		inst := s.decode(a.at, len(s.code))
		if m := AtomicOperand(&inst); m.Base == x86.RIP { // a learned one's line, too: other functions access the word
			static[m.Target/lineSize] = true
		}
	}
	for _, f := range s.extents() {
		from, _ := slices.BinarySearchFunc(locked, f.start, func(a atomicAt, at int) int { return a.at - at })
		to, _ := slices.BinarySearchFunc(locked, f.end, func(a atomicAt, at int) int { return a.at - at })
		s.atomics = append(s.atomics, s.plainIn(f, locked[from:to], static)...)
	}
	slices.SortFunc(s.atomics, func(a, b atomicAt) int { return a.at - b.at })
}

// plainIn finds the plain accesses of a function that are ordered. A function that does not decode has none.
func (s *atomicSearch) plainIn(f function, locked []atomicAt, static map[uint64]bool) (list []atomicAt) {
	near := nearby{at: map[base][]int64{}}
	for _, a := range locked {
		if a.why == isLearned {
			continue
		}
		inst := s.decode(a.at, len(s.code))
		m := AtomicOperand(&inst)
		if b, ok := baseOf(m); ok {
			near.add(b, m.Disp)
		}
	}
	s.addCopies(f, &near)
	near.waits = s.pauses(f)
	if !near.waits && len(near.at) == 0 && len(static) == 0 {
		return nil
	}
	var recent []int
	for at := f.start; at < f.end; {
		inst, err := x86.Decode(s.code[at:f.end], s.base+uint64(at))
		if err != nil {
			return nil
		}
		isListed := slices.ContainsFunc(locked, func(a atomicAt) bool { return a.at == at })
		if m := plainOperand(&inst); m != nil && !isListed && (m.Base == x86.RIP && static[m.Target/lineSize] || near.has(m)) {
			list = append(list, atomicAt{at, slices.Clone(recent), isPlain})
		}
		if recent = append(recent, at); len(recent) > neighbours {
			recent = append(recent[:0], recent[1:]...)
		}
		at += inst.Len
	}
	return list
}

// addCopies adds what the addresses of locked words are computed from, by lea or mov.
func (s *atomicSearch) addCopies(f function, near *nearby) {
	if len(near.at) == 0 {
		return
	}
	for at := f.start; at < f.end; {
		inst, err := x86.Decode(s.code[at:f.end], s.base+uint64(at))
		if err != nil {
			return
		}
		at += inst.Len
		if len(inst.Operands) < 2 || inst.Op != "lea" && inst.Op != "mov" {
			continue
		}
		to, from := base{inst.Operands[0].Reg, x86.RegNone}, &inst.Operands[1]
		source, disp, ok := base{from.Reg, x86.RegNone}, int64(0), from.Reg != x86.RegNone && inst.Op == "mov"
		if inst.Op == "lea" {
			source, ok = baseOf(&from.Memory)
			disp = from.Memory.Disp
		}
		if !ok || to == source {
			continue
		}
		for _, d := range near.at[to] {
			near.add(source, disp+d)
		}
	}
}

// pauses reports whether a function has a pause instruction.
func (s *atomicSearch) pauses(f function) bool {
	for at := f.start; at < f.end; {
		o, err := s.outliner.Next(s.code[at:f.end], s.base+uint64(at))
		if err != nil {
			return false
		}
		if o.Len == 2 && s.code[at] == 0xf3 && s.code[at+1] == 0x90 {
			return true
		}
		at += o.Len
	}
	return false
}

// plainOperand returns the word in memory that an instruction accesses with a general register or
// a constant; nil: it is another instruction.
func plainOperand(inst *x86.Inst) *x86.Memory {
	if inst.Flow != x86.FlowNext || IsAtomic(inst) {
		return nil
	}
	if !strings.HasPrefix(inst.Op, "mov") && !slices.Contains([]string{"cmp", "test", "add", "sub", "or", "and", "xor", "inc", "dec"}, inst.Op) {
		return nil
	}
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && (o.Implicit || o.Repeated || o.Size == 0 || o.Size > 8) {
			return nil
		}
	}
	return AtomicOperand(inst)
}
