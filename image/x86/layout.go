package x86

import "encoding/binary"

// maxLen is the length of the longest valid instruction (Intel SDM volume 2,
// 2.3.11).
const maxLen = 15

// encoding is the scheme by which an instruction is encoded.
type encoding uint8

const (
	encLegacy encoding = iota
	encVEX
	encEVEX
	encXOP // AMD, volume 6
)

// The opcode maps: legacy, VEX and EVEX number them alike.
const (
	mapOne   = 0
	map0F    = 1
	map0F38  = 2
	map0F3A  = 3
	map0F0F  = 15 // 3DNow!
	mapXOP8  = 8
	mapXOP10 = 10
)

// The mandatory prefix, numbered as in VEX.pp.
const (
	ppNone = iota
	pp66
	ppF3
	ppF2
)

// layout holds the positions of an instruction's parts and the values of the
// common fields.
type layout struct {
	enc     encoding
	opmap   uint8
	opcode  byte
	pp      uint8 // mandatory prefix
	segment Segment
	rep     byte // 0, 0xf2 or 0xf3
	lock    bool
	data16  bool // prefix 0x66, also when it is mandatory
	addr32  bool
	notrack bool // prefix 0x3e
	rex     bool
	w       bool
	// The high bits of the register fields, as values to add.
	r, x, b    uint8
	vvvv       uint8
	vectorLen  uint8 // 0: 128, 1: 256, 2: 512
	mask       uint8 // EVEX.aaa
	zeroing    bool
	evexB      bool // broadcast, rounding or exceptions suppressed
	hasModRM   bool
	hasMem     bool
	mod        uint8
	reg, rm    uint8 // three bits
	hasSIB     bool
	indexField uint8 // five bits, for VSIB
	disp8      bool
	mem        Memory
	vexAt      int // where VEX or EVEX starts
	opcodeAt   int
	immAt      int
	immLen     int
	len        int
}

// regField is the register that ModRM.reg names, rmField ModRM.rm.
func (l *layout) regField() uint8 { return l.reg | l.r }
func (l *layout) rmField() uint8 {
	if l.enc == encEVEX {
		return l.rm | l.b | l.x<<1
	}
	return l.rm | l.b
}

// reader reads an instruction's bytes; past the end it returns 0 and sets
// short.
type reader struct {
	code  []byte
	pos   int
	short bool
}

func (r *reader) next() byte {
	if r.pos >= len(r.code) {
		r.short = true
		return 0
	}
	b := r.code[r.pos]
	r.pos++
	return b
}

func (r *reader) skip(n int) {
	if len(r.code)-r.pos < n {
		r.short = true
		r.pos = len(r.code)
		return
	}
	r.pos += n
}

func (r *reader) int32() int64 {
	if len(r.code)-r.pos < 4 {
		r.skip(4)
		return 0
	}
	v := int32(binary.LittleEndian.Uint32(r.code[r.pos:]))
	r.pos += 4
	return int64(v)
}

// parse reads the layout of the instruction at pc. The reason is empty when it
// is well-formed; whether the opcode exists is not checked here.
func (l *layout) parse(code []byte, pc uint64) (reason string) {
	long := len(code) > maxLen
	if long {
		code = code[:maxLen]
	}
	r := reader{code: code}
	if reason = l.parseOpcode(&r); reason == "" {
		l.parseOperands(&r)
	}
	l.len = r.pos
	switch {
	case reason != "":
		return reason
	case r.short && long:
		return "longer than 15 bytes"
	case r.short:
		return "cut off"
	}
	l.finishMemory(pc)
	return ""
}

func (l *layout) parseOpcode(r *reader) string {
	b := l.parsePrefixes(r)
	switch {
	case r.short:
		return ""
	case b == 0xc4 || b == 0xc5 || b == 0x62:
		return l.parseVEX(r, b)
	case b == 0x8f && r.pos < len(r.code) && r.code[r.pos]&0x1f >= mapXOP8:
		return l.parseVEX(r, b)
	case b != 0x0f:
		l.opmap, l.opcode = mapOne, b
		if oneByte[b]&invalid64 != 0 {
			return "an opcode that 64-bit mode does not have"
		}
	default:
		l.parseMap(r)
	}
	l.opcodeAt = r.pos - 1
	switch {
	case l.rep == 0xf3:
		l.pp = ppF3
	case l.rep == 0xf2:
		l.pp = ppF2
	case l.data16:
		l.pp = pp66
	}
	return ""
}

func (l *layout) parseMap(r *reader) {
	l.opmap, l.opcode = map0F, r.next()
	switch l.opcode {
	case 0x38:
		l.opmap, l.opcode = map0F38, r.next()
	case 0x3a:
		l.opmap, l.opcode = map0F3A, r.next()
	case 0x0f:
		l.opmap = map0F0F
	}
}

// parsePrefixes reads the legacy prefixes and REX and returns the byte after
// them. A REX that is not the last prefix has no effect (SDM volume 2, 2.2.1).
func (l *layout) parsePrefixes(r *reader) byte {
	for {
		b := r.next()
		if r.short {
			return 0
		}
		switch {
		case b == 0x66:
			l.data16 = true
		case b == 0x67:
			l.addr32 = true
		case b == 0xf0:
			l.lock = true
		case b == 0xf2 || b == 0xf3:
			l.rep = b
		case b == 0x64:
			l.segment = SegFS
		case b == 0x65:
			l.segment = SegGS
		case b == 0x3e:
			l.notrack = true
		case b == 0x26 || b == 0x2e || b == 0x36:
		case b&0xf0 == 0x40:
			l.rex = true
			l.w = b&8 != 0
			l.r, l.x, l.b = b&4<<1, b&2<<2, b&1<<3
			continue
		default:
			return b
		}
		l.rex, l.w = false, false
		l.r, l.x, l.b = 0, 0, 0
	}
}

func (l *layout) parseVEX(r *reader, first byte) string {
	l.vexAt = r.pos - 1
	// SDM volume 2, 2.3.2 and 2.3.3.
	if l.rex || l.lock || l.rep != 0 || l.data16 {
		return "a prefix that VEX and EVEX do not take"
	}
	switch first {
	case 0xc5:
		l.enc, l.opmap = encVEX, map0F
		p := r.next()
		l.r = ^p & 0x80 >> 4
		l.vexFields(p)
	case 0xc4, 0x8f:
		l.enc = encVEX
		if first == 0x8f {
			l.enc = encXOP
		}
		p0, p1 := r.next(), r.next()
		l.opmap = p0 & 0x1f
		l.r, l.x, l.b = ^p0&0x80>>4, ^p0&0x40>>3, ^p0&0x20>>2
		l.w = p1&0x80 != 0
		l.vexFields(p1)
	default:
		l.evexFields(r.next(), r.next(), r.next())
	}
	l.opcode = r.next()
	l.opcodeAt = r.pos - 1
	if r.short {
		return ""
	}
	return l.checkMap()
}

func (l *layout) vexFields(p byte) {
	l.vvvv = ^p >> 3 & 15
	l.vectorLen = p >> 2 & 1
	l.pp = p & 3
}

func (l *layout) evexFields(p0, p1, p2 byte) {
	l.enc = encEVEX
	l.opmap = p0 & 7
	l.r = ^p0&0x80>>4 | ^p0&0x10
	l.x, l.b = ^p0&0x40>>3, ^p0&0x20>>2
	l.w = p1&0x80 != 0
	l.pp = p1 & 3
	l.vvvv = ^p1>>3&15 | ^p2&8<<1
	l.zeroing = p2&0x80 != 0
	l.vectorLen = p2 >> 5 & 3
	l.evexB = p2&0x10 != 0
	l.mask = p2 & 7
}

func (l *layout) checkMap() string {
	known := false
	switch l.enc {
	case encVEX:
		known = l.opmap >= map0F && l.opmap <= map0F3A
	case encEVEX:
		known = l.opmap >= map0F && l.opmap <= map0F3A || l.opmap == 5 || l.opmap == 6
	case encXOP:
		known = l.opmap >= mapXOP8 && l.opmap <= mapXOP10
	}
	if !known {
		return "an opcode map that is not known"
	}
	return ""
}

func (l *layout) parseOperands(r *reader) {
	class := l.class()
	if class&hasModRM != 0 {
		l.parseModRM(r)
	}
	l.immAt = r.pos
	r.skip(l.immediateLen(class))
	if r.short {
		return
	}
	l.immLen = r.pos - l.immAt
}

func (l *layout) parseModRM(r *reader) {
	m := r.next()
	l.hasModRM = true
	l.mod, l.reg, l.rm = m>>6, m>>3&7, m&7
	// Moves to and from control and debug registers treat any mod as 3 (SDM
	// volume 2, MOV-Move to/from Control Registers).
	if l.mod == 3 || l.enc == encLegacy && l.opmap == map0F && l.opcode >= 0x20 && l.opcode <= 0x23 {
		l.mod = 3
		return
	}
	l.hasMem = true
	mem := Memory{Base: RegNone, Index: RegNone, Segment: l.segment, Addr32: l.addr32}
	disp32 := l.mod == 2
	switch {
	case l.rm == 4:
		disp32 = l.parseSIB(r.next(), &mem) || disp32
	case l.rm == 5 && l.mod == 0:
		mem.Base = RIP
		disp32 = true
	default:
		mem.Base = encodedReg(l.rm | l.b)
	}
	switch {
	case disp32:
		mem.Disp = r.int32()
	case l.mod == 1:
		mem.Disp = int64(int8(r.next()))
		l.disp8 = true
	}
	l.mem = mem
}

// parseSIB reports whether a 32-bit displacement replaces the base.
func (l *layout) parseSIB(sib byte, mem *Memory) (disp32 bool) {
	l.hasSIB = true
	index := sib>>3&7 | l.x
	l.indexField = index
	if l.enc == encEVEX {
		l.indexField |= l.vvvv & 16
	}
	if index != 4 {
		mem.Index = encodedReg(index)
		mem.Scale = 1 << (sib >> 6)
	}
	if sib&7 == 5 && l.mod == 0 {
		return true
	}
	mem.Base = encodedReg(sib&7 | l.b)
	return false
}

// finishMemory computes the fields that depend on the instruction's length.
func (l *layout) finishMemory(pc uint64) {
	switch m := &l.mem; {
	case !l.hasMem:
	case m.Base == RIP:
		m.Target = pc + uint64(l.len) + uint64(m.Disp)
	case m.Base == RegNone && m.Index == RegNone:
		m.Absolute = true
		m.Target = uint64(m.Disp)
	default:
		return
	}
	if l.mem.Addr32 {
		l.mem.Target = uint64(uint32(l.mem.Target))
	}
}

// immediate returns the immediate, sign-extended from its own size.
func (l *layout) immediate(code []byte) int64 {
	b := code[l.immAt : l.immAt+l.immLen]
	switch len(b) {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case 8:
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}
