package x86

import "golang.org/x/arch/x86/x86asm"

func (d *decoder) operands() []Operand { return d.slab[d.first:] }

func (d *decoder) addRegister(r register, a action) {
	d.slab = append(d.slab, Operand{
		Reg: r.reg, RegName: r.name, Size: r.size, Access: a.kind(), Conditional: a&actConditional != 0,
	})
}

// addImmediate sign-extends x86asm's value, because x86asm does not do so in
// all forms of 16 and 32 bits. Two-byte immediates of ret and enter have no
// sign.
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
