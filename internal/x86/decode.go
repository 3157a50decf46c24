package x86

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// DecodeError says that bytes are no instruction that is known.
type DecodeError struct {
	PC     uint64
	Bytes  []byte
	Reason string
	// Len is where to go on.
	Len int
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("x86: bytes % x at %#x: %s", e.Bytes, e.PC, e.Reason)
}

// Decode decodes the instruction at the start of code, which lies at pc.
// The error is a *DecodeError; the length in it is a best guess to go on at,
// never 0.
//
// An instruction with VEX or EVEX that is not known is no error: its name is
// that of its encoding ("vex.66.0f38.e0"), and whatever its fields can name
// counts as possibly read and written.
func Decode(code []byte, pc uint64) (Inst, error) {
	var scratch [12]Operand
	d := decoder{slab: scratch[:0:len(scratch)]}
	inst, err := d.decode(code, pc)
	inst.Operands = append([]Operand(nil), inst.Operands...)
	return inst, err
}

// decoder decodes instructions one after the other and cuts their operands
// out of one slab.
type decoder struct {
	slab []Operand
	// The instruction at hand.
	l     layout
	x     x86asm.Inst
	code  []byte
	first int // of its operands in slab
	inst  Inst
}

func (d *decoder) decode(code []byte, pc uint64) (Inst, error) {
	d.l = layout{}
	d.first = len(d.slab)
	d.inst = Inst{PC: pc}
	if len(code) == 0 {
		return Inst{PC: pc}, &DecodeError{PC: pc, Reason: "no bytes", Len: 1}
	}
	if reason := d.l.parse(code, pc); reason != "" {
		return Inst{PC: pc}, decodeError(code, pc, reason, 1)
	}
	l := &d.l
	d.code = code[:l.len:l.len]
	d.inst.Len, d.inst.Bytes = l.len, d.code
	switch {
	case d.extension():
	case d.library():
	case l.enc == encLegacy:
		size := l.len
		if l.opmap == mapOne {
			size = 1
		}
		return Inst{PC: pc}, decodeError(code, pc, "not a known instruction", size)
	default:
		d.unknownVector()
	}
	d.finish()
	return d.inst, nil
}

func decodeError(code []byte, pc uint64, reason string, size int) *DecodeError {
	return &DecodeError{PC: pc, Bytes: code[:min(len(code), max(size, 8))], Reason: reason, Len: size}
}

// library decodes with x86asm and reports whether its answer can be used:
// the lengths must agree.
func (d *decoder) library() bool {
	l := &d.l
	if l.opmap > map0F3A || l.enc == encXOP {
		return false
	}
	code := d.code[l.vexAt:]
	x, ok := d.tryLibrary(code)
	if !ok && l.enc != encLegacy {
		x, ok = d.tryIgnored(code)
	}
	if !ok {
		return false
	}
	d.x = x
	d.fromLibrary()
	return true
}

func (d *decoder) tryLibrary(code []byte) (x x86asm.Inst, ok bool) {
	x, err := guardedDecode(code)
	if err != nil || x.Op == 0 || x.Len != len(code) && !d.l.noOperands() {
		return x, false
	}
	return x, known.behaviours[x.Op].known
}

// tryIgnored decodes again with W and the vector length cleared: x86asm wants
// them clear where the processor ignores them (WIG and LIG in the manuals).
func (d *decoder) tryIgnored(code []byte) (x x86asm.Inst, ok bool) {
	var buf [maxLen]byte
	variant := buf[:copy(buf[:], code)]
	w, length := 2, 2
	switch {
	case variant[0] == 0xc5:
		w, length = -1, 1
	case variant[0] == 0x62:
		length = 3
	}
	if w > 0 {
		variant[w] &^= 0x80
		if x, ok = d.tryLibrary(variant); ok {
			return x, true
		}
	}
	if variant[0] == 0x62 {
		variant[length] &^= 0x60
	} else {
		variant[length] &^= 4
	}
	if x, ok = d.tryLibrary(variant); ok || w < 0 {
		return x, ok
	}
	variant[w] |= code[w] & 0x80
	return d.tryLibrary(variant)
}

// noOperands recognises vzeroupper and vzeroall, for which x86asm takes the
// next byte for a ModRM.
func (l *layout) noOperands() bool {
	return l.enc == encVEX && l.opmap == map0F && l.opcode == 0x77
}

// guardedDecode calls x86asm, which indexes its prefix array by positions in
// hostile input, and turns a panic into an error.
func guardedDecode(code []byte) (x x86asm.Inst, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("x86asm: %v", p)
		}
	}()
	if len(code) > 0 && (code[0] == 0xc4 || code[0] == 0xc5) {
		// It demands a byte behind the opcode even where there is none.
		var padded [maxLen + 1]byte
		n := copy(padded[:maxLen], code)
		return x86asm.Decode(padded[:n+1], 64)
	}
	return x86asm.Decode(code, 64)
}

// fromLibrary makes the operands of what x86asm decoded.
func (d *decoder) fromLibrary() {
	x, l := &d.x, &d.l
	b := &known.behaviours[x.Op]
	d.inst.Op = known.names[x.Op]
	d.inst.Flow = b.flow
	actions := d.actions(b)
	n := 0
	for _, arg := range x.Args {
		switch a := arg.(type) {
		case nil:
			continue
		case x86asm.Reg:
			if d.isMask(a, n) {
				continue
			}
			d.addRegister(registers[a], actions[n])
		case x86asm.Mem:
			d.addLibraryMemory(a, actions[n], b)
		case x86asm.Imm:
			d.addImmediate(int64(a))
		case x86asm.Rel:
			d.addTarget(int64(a))
		}
		n++
	}
	if l.mask != 0 && l.enc == encEVEX {
		d.applyMask()
	}
	d.special(b)
	for i := range b.implicit {
		d.addImplicit(&b.implicit[i])
	}
}

// actions are what the table says, corrected where the form matters.
func (d *decoder) actions(b *behaviour) [6]action {
	actions := b.actions
	args := &d.x.Args
	switch d.x.Op {
	case x86asm.IMUL:
		if args[1] == nil {
			actions[0] = actRead
		} else if args[2] != nil {
			actions[0] = actWrite
		}
	case x86asm.XOR, x86asm.SUB, x86asm.SBB:
		if args[0] == args[1] {
			actions[0], actions[1] = actWrite, 0
		}
	case x86asm.BT, x86asm.BTC, x86asm.BTR, x86asm.BTS:
		if _, ok := args[1].(x86asm.Reg); ok && d.l.hasMem {
			actions[0] |= actInexact
		}
	case x86asm.FADD, x86asm.FMUL, x86asm.FSUB, x86asm.FSUBR, x86asm.FDIV, x86asm.FDIVR:
		if d.l.hasMem {
			actions[0] = actRead
		}
	case x86asm.MOVLPD, x86asm.MOVLPS, x86asm.MOVHPD, x86asm.MOVHPS:
		if _, ok := args[0].(x86asm.Mem); ok {
			actions[0] = actWrite
		}
	case x86asm.MOVSS, x86asm.MOVSD_XMM:
		actions[0] = actWrite
		if !d.l.hasMem {
			actions[0] |= actRead
		}
	}
	return actions
}

// isMask recognises the argument that stands for EVEX's mask. It comes
// second, or first where there is no destination.
func (d *decoder) isMask(r x86asm.Reg, n int) bool {
	if d.l.enc != encEVEX || d.l.mask == 0 || n > 1 {
		return false
	}
	return r == x86asm.K0+x86asm.Reg(d.l.mask) && (n == 1 || d.l.hasMem)
}

func (d *decoder) operands() []Operand { return d.slab[d.first:] }

func (d *decoder) addRegister(r register, a action) {
	d.slab = append(d.slab, Operand{
		Reg: r.reg, RegName: r.name, Size: r.size, Access: a.kind(), Conditional: a&actConditional != 0,
	})
}

// addImmediate takes x86asm's value, which is not sign-extended in all forms
// of 16 and 32 bits. Two-byte immediates of ret and enter have no sign.
func (d *decoder) addImmediate(v int64) {
	switch {
	case d.l.immLen == 4:
		v = int64(int32(v))
	case d.l.immLen == 2 && d.inst.Flow == FlowNext && d.x.Op != x86asm.ENTER:
		v = int64(int16(v))
	}
	d.slab = append(d.slab, Operand{Reg: RegNone, IsImm: true, Imm: v, Size: d.l.immLen})
}

func (d *decoder) addTarget(rel int64) {
	d.inst.Target = d.inst.PC + uint64(d.inst.Len) + uint64(rel)
	d.inst.HasTarget = true
	d.slab = append(d.slab, Operand{Reg: RegNone, IsImm: true, Imm: int64(d.inst.Target), Size: d.l.immLen})
}

func (d *decoder) addMemory(m Memory, size int, a action) {
	if a&actInexact != 0 {
		m.Inexact = true
	}
	if a&(actRead|actWrite) == 0 {
		size = 0
	}
	d.slab = append(d.slab, Operand{
		IsMemory: true, Memory: m, Reg: RegNone, Size: size, Access: a.kind(), Conditional: a&actConditional != 0,
	})
}

func (d *decoder) addLibraryMemory(a x86asm.Mem, act action, b *behaviour) {
	m := d.l.mem
	if !d.l.hasMem {
		m = d.libraryMemory(a)
	} else if d.l.enc == encEVEX && d.l.disp8 {
		m.Disp = a.Disp // scaled by the size of the access
	}
	if d.l.hasSIB && a.Index >= x86asm.X0 && a.Index <= x86asm.Z31 {
		d.setVectorIndex(&m, a.Index)
	}
	size := b.size
	if size == 0 {
		size = d.x.MemBytes
	}
	if act&actInexact != 0 && b.size == 0 {
		size = 0
	}
	if m.Index == RegVector {
		size = 4 // of an element
		if d.l.w {
			size = 8
		}
	}
	d.addMemory(m, size, act)
	d.slab[len(d.slab)-1].Repeated = m.Index == RegVector
	if d.l.rep != 0 && isString(d.x.Op) {
		o := &d.slab[len(d.slab)-1]
		o.Repeated, o.Conditional = true, true
	}
}

// libraryMemory is a memory operand that no ModRM byte describes.
func (d *decoder) libraryMemory(a x86asm.Mem) Memory {
	m := Memory{Base: RegNone, Index: RegNone, Addr32: d.l.addr32, Disp: a.Disp}
	if a.Segment == x86asm.FS || a.Segment == x86asm.GS {
		m.Segment = d.l.segment
	}
	if a.Base != 0 {
		m.Base = registers[a.Base].reg
		return m
	}
	// mov moffs: the whole address is the immediate.
	m.Absolute = true
	m.Disp = d.l.immediate(d.code)
	m.Target = uint64(m.Disp)
	if m.Addr32 {
		m.Target = uint64(uint32(m.Target))
	}
	return m
}

func (d *decoder) setVectorIndex(m *Memory, index x86asm.Reg) {
	m.Index, m.Inexact = RegVector, true
	m.Scale = 1 << (d.code[d.l.opcodeAt+2] >> 6)
	m.vectorIndex = uint8(index - x86asm.X0)
}

func isString(op x86asm.Op) bool {
	switch op {
	case x86asm.INSB, x86asm.INSW, x86asm.INSD, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD,
		x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ,
		x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ,
		x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ:
		return true
	}
	return false
}

// applyMask makes the accesses depend on the mask: what it excludes is not
// touched, and does not fault (SDM volume 1, 15.6).
func (d *decoder) applyMask() {
	ops := d.operands()
	for i := range ops {
		o := &ops[i]
		switch {
		case o.IsMemory && o.Access != "":
			o.Conditional = true
		case i == 0 && !d.l.zeroing && writes(o.Access) && o.RegName[0] != 'k':
			o.Access, o.Conditional = (actRead | actWrite).kind(), true
		}
	}
	d.inst.style.mask = d.l.mask
	d.inst.style.zeroing = d.l.zeroing
	d.addRegister(registers[int(x86asm.K0)+int(d.l.mask)], actRead)
	d.slab[len(d.slab)-1].Implicit = true
}

// finish hands the operands over and notes what Text needs.
func (d *decoder) finish() {
	d.inst.Operands = d.slab[d.first:len(d.slab):len(d.slab)]
	d.inst.style.set(d)
}
