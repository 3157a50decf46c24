package x86

import (
	"encoding/binary"
	"slices"
)

// operandForm is how a ModRM byte names r/m.
type operandForm struct {
	mod, rm int
	sib     int // -1: none
	disp    []byte
	rexXB   byte // REX.X and REX.B
}

var (
	formBase  = operandForm{mod: 1, rm: 3, sib: -1, disp: []byte{0x40}}                                          // [rbx+0x40]
	formReg   = operandForm{mod: 3, rm: 6, sib: -1}                                                              // rsi
	formIndex = operandForm{mod: 2, rm: 4, sib: 2<<6 | 1<<3 | 4, disp: []byte{0xfc, 0xff, 0xff, 0xff}, rexXB: 3} // [r12+r9*4-4]
	formVSIB  = operandForm{mod: 0, rm: 4, sib: 0<<6 | 4<<3 | 3}                                                 // [rbx+xmm4*1]
)

// ripForm addresses the data relative to the end of the instruction, which is
// patched in afterwards.
var formRIP = operandForm{mod: 0, rm: 5, sib: -1, disp: []byte{0, 0, 0, 0}}

func (f *operandForm) bytes(reg int) []byte {
	out := []byte{byte(f.mod<<6 | reg&7<<3 | f.rm)}
	if f.sib >= 0 {
		out = append(out, byte(f.sib))
	}
	return append(out, f.disp...)
}

// evexCode is an instruction with EVEX.
type evexCode struct {
	opmap, pp, w, l int
	opcode          byte
	reg, mod, rm    int
	disp32          int32
	mask            int
	b, z            int
}

func (e *evexCode) prefix() []byte {
	return []byte{
		0x62,
		byte((^e.reg>>3&1)<<7 | 1<<6 | 1<<5 | (^e.reg>>4&1)<<4 | e.opmap),
		byte(e.w<<7 | 15<<3 | 1<<2 | e.pp),
		byte(e.z<<7 | e.l<<5 | e.b<<4 | 1<<3 | e.mask),
	}
}

func (e *evexCode) bytes() []byte {
	out := append(e.prefix(), e.opcode, byte(e.mod<<6|e.reg&7<<3|e.rm))
	if e.mod == 2 {
		out = binary.LittleEndian.AppendUint32(out, uint32(e.disp32))
	}
	return out
}

// tail holds the following bytes: an immediate, or an address in the data.
var tail = []byte{0x15, 0x15, 0, 0x20, 0, 0, 0, 0}

var pps = [][]byte{nil, {0x66}, {0xf3}, {0xf2}}

// groups are the opcodes of 0F xx whose meaning ModRM.reg selects.
var groups = []int{0x00, 0x01, 0x0d, 0x18, 0x1c, 0x1e, 0x71, 0x72, 0x73, 0xae, 0xba, 0xc7}

// encodings yields the encodings that are tried on the processor: each opcode
// of each map under each mandatory prefix, with and without REX.W, with
// register and memory operands.
func encodings(yield func([]byte) bool) {
	ok := true
	put := func(code []byte) { ok = ok && yield(code) }
	for opcode := range 256 {
		for _, pp := range pps {
			for _, rex := range []byte{0, 0x48, 0x45} {
				legacyEncodings(put, pp, rex, opcode)
			}
		}
		for opmap := map0F; opmap <= map0F3A; opmap++ {
			for fields := range 16 {
				vexEncodings(put, opmap, fields&3, fields>>2&1, fields>>3, opcode)
			}
			for fields := range 8 {
				evexEncodings(put, opmap, fields&3, fields>>2, opcode)
			}
		}
		if !ok {
			return
		}
	}
}

func legacyEncodings(put func([]byte), pp []byte, rex byte, opcode int) {
	start := func(more byte, escape ...byte) []byte {
		out := slices.Clone(pp)
		if rex|more != 0 {
			out = append(out, 0x40|rex|more)
		}
		return append(append(out, escape...), byte(opcode))
	}
	for _, escape := range [][]byte{{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}} {
		if len(escape) == 0 && isPrefix(opcode) {
			continue
		}
		forms := []*operandForm{&formBase, &formReg, &formRIP, &formIndex}
		regs := []int{1, 5}
		if len(escape) == 0 && oneByte[opcode]&hasModRM == 0 || len(escape) == 1 && twoByte[opcode]&hasModRM == 0 {
			put(append(start(0, escape...), tail...))
			continue
		}
		if len(escape) == 0 || len(escape) == 1 && slices.Contains(groups, opcode) {
			regs = []int{0, 1, 2, 3, 4, 5, 6, 7}
		}
		for _, reg := range regs {
			for _, form := range forms {
				code := append(start(form.rexXB, escape...), form.bytes(reg)...)
				put(append(code, tail...))
				if form == &formBase && len(pp) == 0 {
					for _, prefix := range []byte{0xf0, 0x64, 0x65, 0x67} {
						put(append(append([]byte{prefix}, code...), tail...))
					}
				}
			}
			if opcode == 0x01 && len(escape) == 1 {
				for rm := range 8 {
					put(append(start(0, escape...), append([]byte{byte(0xc0 | reg<<3 | rm)}, tail...)...))
				}
			}
		}
	}
}

func isPrefix(opcode int) bool {
	return opcode&0xe7 == 0x26 || opcode&0xf0 == 0x40 || opcode >= 0x64 && opcode <= 0x67 ||
		opcode == 0xf0 || opcode == 0xf2 || opcode == 0xf3
}

func isVSIB(opmap, opcode int) bool {
	return opmap == map0F38 && (opcode >= 0x90 && opcode <= 0x93 || opcode >= 0xa0 && opcode <= 0xa3)
}

func vexEncodings(put func([]byte), opmap, pp, w, l, opcode int) {
	regs := []int{1}
	if opmap == map0F && opcode >= 0x71 && opcode <= 0x73 || opmap == map0F38 && opcode == 0xf3 || opcode == 0xae {
		regs = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	for _, reg := range regs {
		forms := []*operandForm{&formBase, &formReg, &formRIP, &formIndex}
		if isVSIB(opmap, opcode) {
			forms = []*operandForm{&formVSIB}
		}
		for _, f := range forms {
			code := []byte{0xc4, 0xe0&^(f.rexXB<<5) | byte(opmap), byte(w<<7 | 15<<3 | l<<2 | pp), byte(opcode)}
			put(append(append(code, f.bytes(reg)...), tail...))
			if f == &formBase {
				put(append(append([]byte{0x64}, append(code, f.bytes(reg)...)...), tail...))
			}
		}
	}
}

func evexEncodings(put func([]byte), opmap, pp, w, opcode int) {
	regs := []int{1}
	if opmap == map0F && opcode >= 0x71 && opcode <= 0x73 {
		regs = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	for _, reg := range regs {
		forms := []*operandForm{&formBase, &formReg, &formRIP}
		if isVSIB(opmap, opcode) {
			forms = []*operandForm{&formVSIB}
		}
		for l := range 3 {
			for variant := range 6 {
				e := evexCode{opmap: opmap, pp: pp, w: w, l: l, opcode: byte(opcode), reg: reg}
				e.mask, e.b = variant&1*2, variant>>1&1
				if variant >= 4 {
					e.mask, e.b, e.z = 2, 0, 1
					if variant == 5 {
						continue
					}
				}
				for _, f := range forms {
					f := *f
					if f.mod == 1 {
						f.disp = []byte{1}
					}
					code := append(e.prefix(), byte(opcode))
					put(append(append(code, f.bytes(reg)...), tail...))
				}
			}
		}
	}
}
