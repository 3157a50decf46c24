package canary

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// resolve converts the slot's position to an address in this frame. now has the
// registers' positions at the frame's pc, nil when no direct path leads there.
//
// The address is certain when the stack pointer derived from the code agrees
// with the frame. If the code does not determine the stack pointer (variable
// length arrays) the frame's CFA is used, provided that a call precedes the
// return address that the unwinder found by it. A frame known to be smashed
// does not need this check, because its return address may be overwritten.
func (s *slot) resolve(m image.Memory, f, outer *Frame, now *heights.Positions, smashed bool) (evidence.Addr, bool) {
	sp, ok := f.Registers.Get(image.RSP)
	if !ok {
		return 0, false
	}
	var height heights.Position
	if now != nil {
		height = now[x86.RSP]
	}
	if height.Origin == s.place.Origin {
		byStack := evidence.Addr(sp + uint64(s.place.Offset-height.Offset))
		if s.place.Origin == heights.FromAligned {
			return byStack, true
		}
		return byStack, f.CFA == 0 || byStack == f.CFA+evidence.Addr(s.place.Offset)
	}
	if s.place.Origin != heights.FromCFA || !s.framePointer || f.CFA == 0 || height.Origin != heights.Unknown {
		return 0, false
	}
	if !smashed && (outer == nil || !followsCall(m, outer.Registers.PC())) {
		return 0, false
	}
	return f.CFA + evidence.Addr(s.place.Offset), true
}

// followsCall reports whether a call instruction ends at pc: E8 rel32, or
// FF /2 with the lengths that its addressing modes give it.
func followsCall(m image.Memory, pc evidence.Addr) bool {
	const longest = 8
	code := make([]byte, longest)
	if _, err := m.ReadMemory(pc-longest, code); err != nil {
		return false
	}
	for n := 2; n <= longest; n++ {
		inst, err := x86.Decode(code[longest-n:], uint64(pc)-uint64(n))
		if err == nil && inst.Flow == x86.FlowCall && inst.Len == n {
			return true
		}
	}
	return false
}
