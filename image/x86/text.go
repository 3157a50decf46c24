package x86

import (
	"strconv"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// style is the information that Text needs in addition to the operands.
type style struct {
	prefix    prefix
	rounding  rounding
	mask      uint8
	zeroing   bool
	broadcast uint8 // elements that one memory element is spread to
	popped    int8  // to subtract from the displacement of pop [rsp+n]
}

type prefix uint8

const (
	prefixNone prefix = iota
	prefixLock
	prefixNotrack
	prefixBound
	prefixRep
	prefixRepZ
	prefixRepNZ
)

var prefixNames = [...]string{"", "lock ", "notrack ", "bnd ", "rep ", "repz ", "repnz "}

type rounding uint8

const (
	roundingNone rounding = iota
	roundingSuppress
	roundingNearest // and the following in the order of the encoding
)

var roundingNames = [...]string{"", "{sae}", "{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}"}

func (s *style) set(d *decoder) {
	l := &d.l
	switch {
	case l.lock:
		s.prefix = prefixLock
	case l.enc != encLegacy:
	case l.notrack && l.opcode == 0xff && l.opmap == mapOne && (l.reg == 2 || l.reg == 4):
		s.prefix = prefixNotrack
	case l.rep == 0xf2 && (d.inst.Flow == FlowJump || d.inst.Flow == FlowBranch || d.inst.Flow == FlowCall || d.inst.Flow == FlowReturn):
		s.prefix = prefixBound
	case l.rep != 0 && isString(d.x.Op) && l.opmap == mapOne:
		s.prefix = repPrefix(l.rep, l.opcode)
	}
	if l.enc == encEVEX && l.evexB {
		s.setEVEX(d)
	}
}

func repPrefix(rep, opcode byte) prefix {
	compares := opcode == 0xa6 || opcode == 0xa7 || opcode == 0xae || opcode == 0xaf
	switch {
	case rep == 0xf2:
		return prefixRepNZ
	case compares:
		return prefixRepZ
	}
	return prefixRep
}

func (s *style) setEVEX(d *decoder) {
	if d.l.hasMem {
		size := 0
		for i := range d.inst.Operands {
			if o := &d.inst.Operands[i]; o.IsMemory && o.Size > 0 {
				size = o.Size
			}
		}
		if size > 0 {
			s.broadcast = uint8(16 << d.l.vectorLen / size)
		}
		return
	}
	s.rounding = roundingSuppress
	if d.x.SAE && hasRounding(d.inst.Op) {
		s.rounding = roundingNearest + rounding(d.l.vectorLen)
	}
}

// hasRounding reports whether EVEX.b of a register form selects a rounding
// mode; otherwise it only suppresses exceptions (SDM volume 2, 2.7.8 and table
// 2-36).
func hasRounding(op string) bool {
	for _, p := range [...]string{"vadd", "vsub", "vmul", "vdiv", "vsqrt", "vscalef", "vfm", "vfnm"} {
		if strings.HasPrefix(op, p) {
			return true
		}
	}
	return strings.HasPrefix(op, "vcvt") && !strings.HasPrefix(op, "vcvtt") && op != "vcvtps2pd" &&
		op != "vcvtph2ps" && op != "vcvtps2ph" && op != "vcvtss2sd"
}

// Text returns the instruction in Intel syntax, with jump targets as absolute
// addresses.
func (i *Inst) Text() string {
	var b strings.Builder
	b.Grow(48)
	b.WriteString(prefixNames[i.style.prefix])
	b.WriteString(i.Op)
	separator := " "
	rounded := i.style.rounding == roundingNone
	for n := range i.Operands {
		o := &i.Operands[n]
		if o.Implicit {
			continue
		}
		if o.IsImm && !rounded {
			b.WriteString(separator + roundingNames[i.style.rounding])
			rounded = true
		}
		b.WriteString(separator)
		separator = ", "
		b.WriteString(i.operandText(o))
		if n == 0 && i.style.mask != 0 {
			b.WriteString("{k" + strconv.Itoa(int(i.style.mask)) + "}")
			if i.style.zeroing {
				b.WriteString("{z}")
			}
		}
	}
	if !rounded {
		b.WriteString(separator + roundingNames[i.style.rounding])
	}
	return b.String()
}

// OperandText returns one of the instruction's operands in Intel syntax,
// "qword ptr [rax+0x8]".
func (i *Inst) OperandText(n int) string { return i.operandText(&i.Operands[n]) }

func (i *Inst) operandText(o *Operand) string {
	switch {
	case o.IsMemory:
		m := o.Memory
		if !o.Implicit {
			m.Disp -= int64(i.style.popped)
		}
		text := sizeName(o.Size) + m.String()
		if i.style.broadcast != 0 {
			text += "{1to" + strconv.Itoa(int(i.style.broadcast)) + "}"
		}
		return text
	case o.IsImm && i.HasTarget:
		return hex(uint64(o.Imm))
	case o.IsImm:
		return i.immediateText(o.Imm)
	}
	return o.RegName
}

// immediateText writes small negative numbers with a sign and others, which
// are more likely to be masks or constants, at the size of the destination.
func (i *Inst) immediateText(v int64) string {
	size := 0
	if len(i.Operands) > 0 {
		size = i.Operands[0].Size
	}
	switch {
	case size == 2 && v < -0x100:
		return hex(uint64(uint16(v)))
	case size == 4 && v < -0x10000:
		return hex(uint64(uint32(v)))
	case size == 8 && v < -1<<31:
		return hex(uint64(v))
	}
	return signedHex(v)
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

func signedHex(v int64) string {
	if v < 0 {
		return "-" + hex(-uint64(v))
	}
	return hex(uint64(v))
}

func sizeName(size int) string {
	switch size {
	case 1:
		return "byte ptr "
	case 2:
		return "word ptr "
	case 4:
		return "dword ptr "
	case 6:
		return "fword ptr "
	case 8:
		return "qword ptr "
	case 10:
		return "tbyte ptr "
	case 16:
		return "xmmword ptr "
	case 32:
		return "ymmword ptr "
	case 64:
		return "zmmword ptr "
	}
	return ""
}

// String returns the operand in Intel syntax without its size:
// "fs:[rax+rcx*4-0x10]".
func (m *Memory) String() string {
	var b strings.Builder
	switch m.Segment {
	case SegFS:
		b.WriteString("fs:")
	case SegGS:
		b.WriteString("gs:")
	}
	b.WriteByte('[')
	if m.Absolute {
		b.WriteString(hex(m.Target))
		b.WriteByte(']')
		return b.String()
	}
	if m.Base != RegNone {
		b.WriteString(m.partName(m.Base))
	}
	if m.Index != RegNone {
		if m.Base != RegNone {
			b.WriteByte('+')
		}
		b.WriteString(m.partName(m.Index) + "*" + strconv.Itoa(int(m.Scale)))
	}
	switch {
	case m.Disp > 0:
		b.WriteByte('+')
		b.WriteString(hex(uint64(m.Disp)))
	case m.Disp < 0:
		b.WriteString(signedHex(m.Disp))
	}
	b.WriteByte(']')
	return b.String()
}

func (m *Memory) partName(r Reg) string {
	switch {
	case r == RegVector:
		return registers[int(x86asm.X0)+int(m.vectorIndex)].name
	case !m.Addr32:
		return r.String()
	case r == RIP:
		return "eip"
	}
	for _, reg := range registers[x86asm.EAX : x86asm.R15L+1] {
		if reg.reg == r {
			return reg.name
		}
	}
	return r.String()
}
