package x86

// opClass says which ModRM byte and immediates follow an opcode.
type opClass uint16

const (
	hasModRM opClass = 1 << iota
	imm8             // one byte
	imm16            // two bytes
	immZ             // 2 with a 16-bit operand, else 4
	immV             // 2, 4, or 8 with REX.W (mov reg, imm)
	// Relative branches have 4 whatever the operand size. AMD's processors take
	// 2 after a prefix 0x66; no compiler emits that.
	imm32
	immAddress // 8, or 4 with a 32-bit address (mov moffs)
	immGroup3  // imm8 or immZ, for /0 and /1 only (test)
	invalid64  // not in 64-bit mode
)

// The classes of the one-byte opcodes and of 0F xx (SDM volume 2, A.3).
var (
	oneByte = oneByteClasses()
	twoByte = twoByteClasses()
)

func setClass(table *[256]opClass, class opClass, ranges ...byte) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for op := int(ranges[i]); op <= int(ranges[i+1]); op++ {
			table[op] |= class
		}
	}
}

func oneByteClasses() *[256]opClass {
	var t [256]opClass
	for op := byte(0); op < 0x40; op += 8 {
		setClass(&t, hasModRM, op, op+3)
		setClass(&t, imm8, op+4, op+4)
		setClass(&t, immZ, op+5, op+5)
	}
	setClass(&t, hasModRM, 0x63, 0x63, 0x69, 0x69, 0x6b, 0x6b, 0x80, 0x8f,
		0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd3, 0xd8, 0xdf, 0xf6, 0xf7, 0xfe, 0xff)
	setClass(&t, imm8, 0x6a, 0x6b, 0x70, 0x7f, 0x80, 0x80, 0x82, 0x83, 0xa8, 0xa8,
		0xb0, 0xb7, 0xc0, 0xc1, 0xc6, 0xc6, 0xc8, 0xc8, 0xcd, 0xcd, 0xd4, 0xd5,
		0xe0, 0xe7, 0xeb, 0xeb)
	setClass(&t, immZ, 0x68, 0x69, 0x81, 0x81, 0xa9, 0xa9, 0xc7, 0xc7)
	setClass(&t, immV, 0xb8, 0xbf)
	setClass(&t, imm16, 0xc2, 0xc2, 0xc8, 0xc8, 0xca, 0xca)
	setClass(&t, imm32, 0xe8, 0xe9)
	setClass(&t, immAddress, 0xa0, 0xa3)
	setClass(&t, immGroup3, 0xf6, 0xf7)
	for _, op := range []byte{0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f,
		0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea} {
		setClass(&t, invalid64, op, op)
	}
	return &t
}

func twoByteClasses() *[256]opClass {
	var t [256]opClass
	setClass(&t, hasModRM, 0x00, 0x03, 0x0d, 0x0d, 0x10, 0x2f, 0x40, 0x76, 0x78, 0x7f,
		0x90, 0x9f, 0xa3, 0xa5, 0xab, 0xc7, 0xd0, 0xff)
	setClass(&t, imm8, 0x70, 0x73, 0xa4, 0xa4, 0xac, 0xac, 0xba, 0xba, 0xc2, 0xc2, 0xc4, 0xc6)
	setClass(&t, imm32, 0x80, 0x8f)
	return &t
}

func (l *layout) class() opClass {
	switch l.opmap {
	case mapOne:
		return oneByte[l.opcode]
	case map0F:
		class := twoByte[l.opcode]
		if l.enc != encLegacy {
			class &^= imm32
			if l.opcode != 0x77 {
				class |= hasModRM
			}
		}
		return class
	case map0F3A, mapXOP8, map0F0F:
		return hasModRM | imm8
	case mapXOP10:
		return hasModRM | imm32
	}
	return hasModRM
}

func (l *layout) immediateLen(class opClass) int {
	n := 0
	if class&imm8 != 0 {
		n++
	}
	if class&imm16 != 0 {
		n += 2
	}
	if class&imm32 != 0 {
		n += 4
	}
	if class&immZ != 0 || class&immV != 0 {
		n += l.wordImmediate(class)
	}
	if class&immAddress != 0 {
		n += 8
		if l.addr32 {
			n -= 4
		}
	}
	if class&immGroup3 != 0 && l.reg < 2 {
		n++
		if l.opcode == 0xf7 {
			n += l.wordImmediate(immZ) - 1
		}
	}
	// extrq and insertq with immediates (AMD volume 4) have two bytes.
	if l.enc == encLegacy && l.opmap == map0F && l.opcode == 0x78 && (l.pp == pp66 || l.pp == ppF2) {
		n += 2
	}
	return n
}

func (l *layout) wordImmediate(class opClass) int {
	switch {
	case l.w && class&immV != 0:
		return 8
	case l.data16 && !l.w:
		return 2
	}
	return 4
}
