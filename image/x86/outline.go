package x86

import "encoding/binary"

// Outline is the part of an instruction that a scan of large code needs.
type Outline struct {
	Len int
	// Target is the destination of a direct jump, branch or call.
	Target    uint64
	HasTarget bool
}

// An Outliner finds the lengths and targets of instructions, about twenty times as
// fast as Decode, and with the same results. It computes the length from the opcode
// maps. Whether an instruction exists depends on its prefixes, opcode and ModRM
// alone, so it asks Decode once for each combination of these, and remembers the
// answer. The zero value is ready for use; it takes half a megabyte, and is not safe
// for concurrent use.
type Outliner struct {
	// heads holds the answer for a head, as answer<<answerShift | the head's key,
	// at the hash of the key. A head with the same hash replaces it.
	heads [1 << headBits]uint64
}

const (
	headBits = 16
	// maxHead is the longest head that has a key: it shares eight bytes with its
	// length and the answer.
	maxHead     = 7
	lengthShift = 8 * maxHead
	answerShift = 60
)

// The answers for a head. Unknown heads, such as those that Decode rejects, are
// passed to Decode each time.
const (
	answerNone = iota
	answerPlain
	answerTarget
	answerDecode
)

// Next outlines the instruction at the start of code, which is at address pc. The
// error is that of Decode.
func (o *Outliner) Next(code []byte, pc uint64) (Outline, error) {
	if len(code) > maxLen {
		if out, ok := o.quick(code[:maxLen+1], pc); ok {
			return out, nil
		}
	}
	inst, err := Decode(code, pc)
	if err != nil {
		return Outline{}, err
	}
	return Outline{inst.Len, inst.Target, inst.HasTarget}, nil
}

// quick is Next for the usual encodings. It needs maxLen+1 bytes, so that no
// instruction is cut off.
func (o *Outliner) quick(code []byte, pc uint64) (Outline, bool) {
	var h head
	if !h.parse(code) || h.end > maxLen {
		return Outline{}, false
	}
	if h.vector {
		return Outline{Len: h.end}, true // Decode knows all of them, if only by their encoding
	}
	switch o.answer(code, &h) {
	case answerPlain:
		return Outline{Len: h.end}, true
	case answerTarget:
		out := Outline{Len: h.end, HasTarget: true, Target: pc + uint64(h.end)}
		switch h.immediate {
		case 1:
			out.Target += uint64(int64(int8(code[h.end-1])))
		case 4:
			out.Target += uint64(int64(int32(binary.LittleEndian.Uint32(code[h.end-4:]))))
		default:
			return Outline{}, false
		}
		return out, true
	}
	return Outline{}, false
}

// answer is Decode's result for instructions with this head.
func (o *Outliner) answer(code []byte, h *head) int {
	if h.len > maxHead {
		return answerDecode
	}
	key := binary.LittleEndian.Uint64(code)&(1<<(8*h.len)-1) | uint64(h.len)<<lengthShift
	const multiplier = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: Knuth, volume 3, 6.4
	slot := &o.heads[key*multiplier>>(64-headBits)]
	if *slot&(1<<answerShift-1) == key {
		return int(*slot >> answerShift)
	}
	answer := answerDecode
	if inst, err := Decode(code[:h.end], 0); err == nil && inst.Len == h.end {
		answer = answerPlain
		if inst.HasTarget {
			answer = answerTarget
		}
	}
	*slot = uint64(answer)<<answerShift | key
	return answer
}

// head is an instruction's bytes up to ModRM, and the lengths that follow from
// them.
type head struct {
	len       int // up to and with ModRM
	immediate int // length of the immediate
	end       int // length of the instruction
	vector    bool
}

// parse returns false for rare encodings and invalid bytes, which are left to
// Decode.
func (h *head) parse(code []byte) bool {
	at, data16, wide := 0, false, false
	for at < maxHead && quickPrefix[code[at]] {
		data16 = data16 || code[at] == 0x66
		at++
	}
	if code[at]&0xf0 == 0x40 {
		wide = code[at]&8 != 0
		at++
	}
	l := layout{opmap: mapOne, opcode: code[at], data16: data16, w: wide}
	switch {
	case l.opcode == 0xc5 || l.opcode == 0xc4 || l.opcode == 0x62:
		return at == 0 && h.parseVector(code, &l)
	case l.opcode == 0x0f:
		at++
		if !l.openMap(code, &at) {
			return false
		}
	case oneByte[l.opcode]&invalid64 != 0 || notQuick[l.opcode]:
		return false
	}
	h.finish(code, at+1, &l)
	return true
}

// quickPrefix are the legacy prefixes that leave addresses at 64 bits.
var quickPrefix = [256]bool{0x26: true, 0x2e: true, 0x36: true, 0x3e: true, 0x64: true, 0x65: true, 0x66: true, 0xf0: true, 0xf2: true, 0xf3: true}

// notQuick are one-byte opcodes that are prefixes, or have several encodings.
var notQuick = [256]bool{0x26: true, 0x2e: true, 0x36: true, 0x3e: true, 0x64: true, 0x65: true, 0x66: true, 0x67: true, 0x8f: true,
	0xf0: true, 0xf2: true, 0xf3: true,
	0x40: true, 0x41: true, 0x42: true, 0x43: true, 0x44: true, 0x45: true, 0x46: true, 0x47: true,
	0x48: true, 0x49: true, 0x4a: true, 0x4b: true, 0x4c: true, 0x4d: true, 0x4e: true, 0x4f: true}

// openMap reads an opcode that follows the byte 0x0f.
func (l *layout) openMap(code []byte, at *int) bool {
	l.opmap, l.opcode = map0F, code[*at]
	switch op := l.opcode; {
	case op == 0x0f || op == 0x78 || op >= 0x20 && op <= 0x23:
		return false // 3DNow!, and moves whose lengths have rules of their own
	case op == 0x38:
		l.opmap = map0F38
	case op == 0x3a:
		l.opmap = map0F3A
	default:
		return true
	}
	*at++
	l.opcode = code[*at]
	return true
}

// parseVector is for VEX and EVEX (SDM volume 2, 2.3.5 and 2.7.1).
func (h *head) parseVector(code []byte, l *layout) bool {
	at := 2
	switch code[0] {
	case 0xc5:
		l.enc, l.opmap = encVEX, map0F
	case 0xc4:
		l.enc, l.opmap, at = encVEX, code[1]&0x1f, 3
	default:
		l.enc, l.opmap, at = encEVEX, code[1]&7, 4
	}
	if l.checkMap() != "" {
		return false
	}
	l.opcode = code[at]
	h.vector = true
	h.finish(code, at+1, l)
	return true
}

// finish adds the parts after the opcode, which ends at offset at.
func (h *head) finish(code []byte, at int, l *layout) {
	class := l.class()
	h.len = at
	if class&hasModRM != 0 {
		m := code[at]
		at++
		h.len = at
		l.reg = m >> 3 & 7
		mod, rm := m>>6, m&7
		switch {
		case mod == 3:
		case rm == 4:
			if mod == 0 && code[at]&7 == 5 {
				at += 4
			}
			at++
		case rm == 5 && mod == 0:
			at += 4
		}
		switch mod {
		case 1:
			at++
		case 2:
			at += 4
		}
	}
	h.immediate = l.immediateLen(class)
	h.end = at + h.immediate
}
