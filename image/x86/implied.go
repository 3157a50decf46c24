package x86

import "golang.org/x/arch/x86/x86asm"

// stackSlot is memory at a distance from rsp as it is before the instruction.
func stackSlot(disp int64) Memory {
	return Memory{Base: RSP, Index: RegNone, Disp: disp}
}

// addImplicit adds an implicit operand of the table.
func (d *decoder) addImplicit(im *implicit) {
	first := len(d.slab)
	switch im.name {
	case "a":
		d.addRegister(generalRegister(0, d.operandSize(), true), im.act)
	case "d":
		d.addRegister(generalRegister(2, d.operandSize(), true), im.act)
	case "si":
		d.addStringRegister(6, im.act)
	case "di":
		d.addStringRegister(7, im.act)
		d.addCounter()
	case "mul":
		d.addProduct(actRead|actWrite, actWrite)
	case "div":
		d.addProduct(actRead|actWrite, actRead|actWrite)
	case "push", "push8", "pop", "pop8":
		d.addStack(im)
	case "leave":
		d.addMemory(Memory{Base: RBP, Index: RegNone}, 8, actRead)
		d.addRegister(registerNames["rsp"], actWrite)
		d.addRegister(registerNames["rbp"], actRead|actWrite)
	case "enter":
		d.addMemory(stackSlot(-8), 8, actWrite)
		d.addRegister(registerNames["rsp"], actRead|actWrite)
		d.addRegister(registerNames["rbp"], actRead|actWrite)
	case "maskmov":
		m := Memory{Base: RDI, Index: RegNone, Segment: d.l.segment, Addr32: d.l.addr32}
		size := 16
		if d.x.Op == x86asm.MASKMOVQ {
			size = 8
		}
		d.addMemory(m, size, im.act)
	case "clzero":
		// The line around the address is cleared (AMD volume 3, CLZERO).
		d.addMemory(Memory{Base: RAX, Index: RegNone, Segment: d.l.segment, Addr32: d.l.addr32, Inexact: true}, 64, im.act)
	case "movdir":
		m := Memory{Base: encodedReg(d.l.regField()), Index: RegNone, Addr32: d.l.addr32}
		d.addMemory(m, 64, im.act)
	default:
		d.addRegister(register{im.name, im.reg, im.size}, im.act)
	}
	for i := first; i < len(d.slab); i++ {
		d.slab[i].Implicit = true
	}
}

// operandSize is the size of the first explicit operand, or the one that the
// prefixes select.
func (d *decoder) operandSize() int {
	if ops := d.operands(); len(ops) > 0 && !ops[0].IsImm && ops[0].Size != 0 {
		return ops[0].Size
	}
	switch {
	case d.l.w:
		return 8
	case d.l.data16 && d.l.enc == encLegacy:
		return 2
	}
	return 4
}

// addStringRegister adds rsi or rdi, which a string instruction advances, and
// with 32-bit addresses esi or edi.
func (d *decoder) addStringRegister(n uint8, act action) {
	size := 8
	if d.l.addr32 {
		size = 4
	}
	d.addRegister(generalRegister(n, size, true), act)
	if n == 6 && !d.hasDestination() {
		d.addCounter()
	}
}

// hasDestination reports whether the instruction also uses rdi.
func (d *decoder) hasDestination() bool {
	for i := range known().behaviours[d.x.Op].implicit {
		if known().behaviours[d.x.Op].implicit[i].name == "di" {
			return true
		}
	}
	return false
}

// addCounter adds rcx for a repeated instruction.
func (d *decoder) addCounter() {
	if d.l.rep == 0 {
		return
	}
	size := 8
	if d.l.addr32 {
		size = 4
	}
	for i := range d.operands() {
		if d.operands()[i].Reg == RCX {
			return
		}
	}
	d.addRegister(generalRegister(1, size, true), actRead|actWrite)
}

// addProduct adds rdx:rax at the operand's size; of 8-bit operands the
// product and the dividend are in ax (SDM volume 2, MUL and DIV).
func (d *decoder) addProduct(low, high action) {
	size := d.operandSize()
	if size == 1 {
		d.addRegister(generalRegister(0, 2, true), low)
		return
	}
	d.addRegister(generalRegister(0, size, true), low)
	d.addRegister(generalRegister(2, size, true), high)
}

// addStack adds the stack slot of push, pop, call and ret, and rsp.
func (d *decoder) addStack(im *implicit) {
	size := 8
	if d.l.data16 && !d.l.w && (im.name == "push" || im.name == "pop") {
		size = 2
	}
	slot := stackSlot(0)
	if im.act&actWrite != 0 {
		slot.Disp = -int64(size)
	}
	d.addMemory(slot, size, im.act)
	d.addRegister(registerNames["rsp"], actRead|actWrite)
}

// special adds accesses that depend on more than the mnemonic.
func (d *decoder) special(b *behaviour) {
	ops := d.operands()
	switch d.x.Op {
	case x86asm.IMUL:
		if len(ops) == 1 {
			d.addImplicit(&implicit{name: "mul", act: actRead | actWrite})
		}
	case x86asm.POP:
		// The address is computed after rsp was raised (SDM volume 2, POP).
		if ops[0].IsMemory && ops[0].Memory.Base == RSP {
			size := int64(8)
			if d.l.data16 && !d.l.w {
				size = 2
			}
			ops[0].Memory.Disp += size
			d.inst.style.popped = int8(size)
		}
	case x86asm.FLD, x86asm.FSTP:
		if ops[0].IsMemory && ops[0].Size == 0 {
			ops[0].Size = 10
		}
	case x86asm.INT:
		d.interrupt(ops)
	case x86asm.JMP, x86asm.CALL:
		if len(ops) == 1 && ops[0].IsMemory {
			ops[0].Size = 8
		}
	}
}

func (d *decoder) interrupt(ops []Operand) {
	switch {
	case d.code[d.l.opcodeAt] == 0xcc:
		d.inst.Op = "int3"
		d.slab = d.slab[:d.first]
	case len(ops) == 1 && uint8(ops[0].Imm) == 0x80:
		d.inst.Flow = FlowSyscall
		d.addImplicit(&implicit{name: "rax", reg: RAX, size: 8, act: actRead | actWrite})
	}
}
