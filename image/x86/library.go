package x86

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// library decodes with x86asm and reports whether its answer can be used:
// the lengths must agree.
func (d *decoder) library() bool {
	l := &d.l
	if l.opmap > map0F3A || l.enc == encXOP {
		return false
	}
	code := d.code[l.vexAt:]
	if !d.tryLibrary(code) && (l.enc == encLegacy || !d.tryIgnored(code)) {
		return false
	}
	for _, arg := range d.x.Args {
		// Test registers, and control registers that no processor has.
		if r, isReg := arg.(x86asm.Reg); isReg && registers[r].name == "" {
			return false
		}
	}
	d.fromLibrary()
	return true
}

func (d *decoder) tryLibrary(code []byte) bool {
	x := &d.x
	if err := guardedDecode(x, code); err != nil || x.Op == 0 {
		return false
	}
	return (x.Len == len(code) || d.l.noOperands()) && known().behaviours[x.Op].known
}

// tryIgnored decodes again with the vector length or W cleared: x86asm expects
// them clear where the processor ignores them (LIG and WIG in the manuals). The
// length is cleared first, because W of scalar instructions selects their type.
func (d *decoder) tryIgnored(code []byte) bool {
	var buf [maxLen]byte
	variant := buf[:copy(buf[:], code)]
	at, length := 2, byte(4)
	switch variant[0] {
	case 0xc5:
		variant[1] &^= length
		return d.tryLibrary(variant)
	case 0x62:
		at, length = 3, 0x60
	}
	variant[at] &^= length
	if d.tryLibrary(variant) {
		return true
	}
	variant[at] = code[at]
	variant[2] &^= 0x80
	if d.tryLibrary(variant) {
		return true
	}
	variant[at] &^= length
	return d.tryLibrary(variant)
}

// noOperands recognises vzeroupper and vzeroall, for which x86asm takes the
// next byte as ModRM.
func (l *layout) noOperands() bool {
	return l.enc == encVEX && l.opmap == map0F && l.opcode == 0x77
}

// guardedDecode calls x86asm, which indexes its prefix array by positions in
// hostile input, and turns its panics into errors.
func guardedDecode(x *x86asm.Inst, code []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("x86asm: %v", p)
		}
	}()
	if code[0] == 0xc4 || code[0] == 0xc5 {
		// It needs a byte after the opcode, even if there is none.
		var padded [maxLen + 1]byte
		code = padded[:copy(padded[:maxLen], code)+1]
	}
	*x, err = x86asm.Decode(code, 64)
	return err
}

// fromLibrary converts the operands that x86asm decoded.
func (d *decoder) fromLibrary() {
	x, l := &d.x, &d.l
	b := &known().behaviours[x.Op]
	d.inst.Op = known().names[x.Op]
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

// actions returns the table's actions, corrected where the form matters.
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

// isMask recognises the argument for EVEX's mask. It is the second, or the
// first if there is no destination.
func (d *decoder) isMask(r x86asm.Reg, n int) bool {
	if d.l.enc != encEVEX || d.l.mask == 0 || n > 1 {
		return false
	}
	return r == x86asm.K0+x86asm.Reg(d.l.mask) && (n == 1 || d.l.hasMem)
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

// applyMask makes the accesses conditional on the mask: excluded elements are
// not accessed and do not fault (SDM volume 1, 15.6).
func (d *decoder) applyMask() {
	ops, onMask := d.operands(), actRead
	for i := range ops {
		o := &ops[i]
		switch {
		case o.IsMemory && o.Access != "":
			if o.Conditional = true; o.Memory.Index == RegVector {
				onMask |= actWrite // a gather or scatter clears it, element by element
			}
		case i == 0 && !d.l.zeroing && o.Access.Writes() && o.RegName[0] != 'k':
			o.Access, o.Conditional = (actRead | actWrite).kind(), true
		}
	}
	d.inst.style.mask = d.l.mask
	d.inst.style.zeroing = d.l.zeroing
	d.addRegister(registers[int(x86asm.K0)+int(d.l.mask)], onMask)
	d.slab[len(d.slab)-1].Implicit = true
}
