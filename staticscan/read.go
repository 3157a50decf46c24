package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Reading is memory that an instruction is about to read.
type Reading struct {
	Addr evidence.Addr
	Size int
	// Name is what the program calls it, as far as it has words.
	Name string
	// Outside says that it lies outside of the array that the code means; nil: it does
	// not, as far as is known.
	Outside *Outside
}

// Read is the memory that the innermost frame's instruction is about to read; ok is false
// if it reads none, or it is not known where.
func Read(in Input) (r Reading, ok bool) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Reading{}, false
	}
	t := &originSearch{in: &in, processView: newWorld(&in), hops: defaultHops}
	s, err := t.newSlice(&in, 0, in.Frames[0].Registers)
	if err != nil || s.now < 0 {
		return Reading{}, false
	}
	t.named = in.isOwn(s.frame)
	inst := &s.a.flow.insts[s.now]
	for n := range inst.Operands {
		op := &inst.Operands[n]
		if !op.IsMemory || op.Access != evidence.Read && op.Access != evidence.ReadWrite || op.Memory.Segment != x86.SegNone {
			continue
		}
		if at, known := op.Memory.Address(s.known); known {
			address := s.addressOf(s.now, &op.Memory, 0)
			e, _ := s.describePlace(address, op.Size, s.now, 0)
			addr := evidence.Addr(at)
			return Reading{Addr: addr, Size: op.Size, Name: e.text, Outside: t.outside(s, s.now, address, addr, op.Size)}, true
		}
	}
	return Reading{}, false
}
