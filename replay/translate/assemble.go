package translate

import (
	"bytes"
	"encoding/binary"
	"errors"

	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// The processor's numbers of the registers that indirect jumps use.
const (
	hardA  = 0
	hardC  = 1
	hardD  = 2
	hardSP = 4
)

// link is a jump with 32 bits of displacement from a copy to a program address.
type link struct {
	at     uint64 // of the displacement
	target uint64
}

// assembler writes the copy of a block.
type assembler struct {
	patch.Assembler
	x     *Translator
	b     *block
	links []link
	// misses are the addresses after int3 instructions that stop for an indirect jump whose target has no copy.
	misses []uint64
}

// rex is the prefix of a 64-bit instruction with a register field and a base.
func rex(reg, base uint8) byte { return 0x48 | reg>>3<<2 | base>>3 }

// word appends a mov between a register and one of the tool's words.
func (a *assembler) word(opcode, reg uint8, word uint64) {
	a.Write([]byte{rex(reg, 0), opcode, reg&7<<3 | 4, 0x25})
	a.Word(a.x.data + word)
}

const (
	opStore = 0x89
	opLoad  = 0x8b
)

// record appends an instruction whose memory operand is a place in the record. field is its register field.
func (a *assembler) record(prefix, opcode []byte, field uint8, at int) {
	base := a.b.free
	a.Write(prefix)
	a.Write(opcode)
	a.WriteByte(0x80 | field&7<<3 | base&7)
	if base&7 == hardSP {
		a.WriteByte(0x24)
	}
	a.Word(uint64(at))
}

// assemble appends the copy of the block.
func (a *assembler) assemble() error {
	b := a.b
	b.start = a.Here()
	a.word(opStore, b.free, wordFree)
	a.word(opLoad, b.free, wordLog)
	a.record([]byte{rex(0, b.free)}, []byte{0xc7}, 0, 0)
	a.Word(uint64(b.id))
	for n := range b.code {
		i := &b.code[n]
		if i.inst.Flow != x86.FlowNext {
			return a.jump(i)
		}
		if i.condition != 0 {
			code := i.inst.Bytes[bytes.IndexByte(i.inst.Bytes, 0x0f)+1]
			a.record([]byte{0x40 | b.free>>3}, []byte{0x0f, 0x90 | code&15}, 0, i.condition)
		}
		i.from = a.Here()
		before := a.Len()
		if err := a.Move(i.inst); err != nil {
			a.Truncate(before)
			return a.shorten(n, err)
		}
		i.to = a.Here()
		for _, w := range i.writes {
			r := w.reg.Encoding()
			a.record([]byte{rex(r, b.free)}, []byte{opStore}, r, w.at)
		}
		i.stored = a.Here()
	}
	a.leave()
	a.goTo(b.next)
	return nil
}

// shorten ends the block before instruction n, which cannot be moved.
func (a *assembler) shorten(n int, err error) error {
	if n == 0 || !errors.Is(err, patch.ErrImpossible) {
		return err
	}
	b := a.b
	b.next, b.code = b.code[n].inst.PC, b.code[:n]
	b.size = wordSize
	for k := range b.code {
		i := &b.code[k]
		if i.condition != 0 {
			b.size += wordSize
		}
		b.size += wordSize * len(i.writes)
	}
	a.leave()
	a.goTo(b.next)
	return nil
}

// leave ends the record, whose address is in the free register, and gives the register its value.
func (a *assembler) leave() {
	free := a.b.free
	a.record([]byte{rex(free, free)}, []byte{0x8d}, free, a.b.size)
	a.word(opStore, free, wordLog)
	a.word(opLoad, free, wordFree)
}

// goTo appends a jump to the copy of the code at an address.
func (a *assembler) goTo(target uint64) {
	a.WriteByte(0xe9)
	a.linkTo(target)
}

func (a *assembler) linkTo(target uint64) {
	a.links = append(a.links, link{a.Here(), target})
	a.Word(0)
}

// jump appends the instruction that ends the block.
func (a *assembler) jump(i *instruction) error {
	inst := i.inst
	next := inst.PC + uint64(inst.Len)
	i.from = a.Here()
	if before := a.Len(); !inst.HasTarget {
		if err := a.loadTarget(inst); err != nil {
			a.Truncate(before)
			return a.shorten(len(a.b.code)-1, err)
		}
	}
	switch inst.Flow {
	case x86.FlowCall:
		a.push(next)
	case x86.FlowReturn:
		a.Write([]byte{0x48, 0x8d, 0xa4, 0x24}) // lea n(%rsp), %rsp
		a.Word(dropped(inst))
	}
	i.to, i.stored = a.Here(), a.Here()
	if !inst.HasTarget {
		a.word(opLoad, a.b.free, wordLog)
		a.leave()
		a.dispatch()
		return nil
	}
	a.leave()
	switch {
	case inst.Flow == x86.FlowBranch && patch.CountedBranch(inst):
		a.Write([]byte{inst.Bytes[0], 2, 0xeb, 5, 0xe9}) // to the jump after the jump
		a.linkTo(inst.Target)
		a.goTo(next)
	case inst.Flow == x86.FlowBranch:
		a.Write(patch.BranchOpcode(inst))
		a.linkTo(inst.Target)
		a.goTo(next)
	default:
		a.goTo(inst.Target)
	}
	return nil
}

// push stores a return address and only then lowers the stack pointer, so that a fault finds the registers unchanged.
func (a *assembler) push(next uint64) {
	a.Write([]byte{0xc7, 0x44, 0x24, 0xf8}) // movl next, -8(%rsp)
	a.Word(next)
	a.Write([]byte{0xc7, 0x44, 0x24, 0xfc}) // movl its upper half, -4(%rsp)
	a.Word(next >> 32)
	a.Write([]byte{0x48, 0x8d, 0x64, 0x24, 0xf8}) // lea -8(%rsp), %rsp
}

// loadTarget puts the target of an indirect jump, call or return into its word. The free register no longer points to
// the record.
func (a *assembler) loadTarget(inst *x86.Inst) error {
	free := a.b.free
	if inst.Flow == x86.FlowReturn {
		a.Write([]byte{rex(free, 0), opLoad, free&7<<3 | hardSP, 0x24}) // mov (%rsp), free
		a.word(opStore, free, wordTarget)
		return nil
	}
	code := loadOf(inst, free)
	for k := range inst.Operands {
		o := &inst.Operands[k]
		if !o.IsMemory || o.Memory.Base != x86.RIP {
			continue
		}
		want := binary.LittleEndian.AppendUint32(nil, uint32(o.Memory.Disp))
		at := bytes.LastIndex(code, want) // the displacement is last
		if at < 0 || at+len(want) != len(code) {
			return patch.ErrImpossible
		}
		a.Write(code[:at])
		if err := a.Relative(o.Memory.Target, len(want)); err != nil {
			return err
		}
		a.word(opStore, free, wordTarget)
		return nil
	}
	a.Write(code)
	a.word(opStore, free, wordTarget)
	return nil
}

// loadOf is the mov to a register of the operand of an indirect jump or call; nil: the encoding is an unusual one.
func loadOf(inst *x86.Inst, reg uint8) []byte {
	var code []byte
	in := inst.Bytes
	for len(in) > 0 && (in[0] == 0x3e || in[0] == 0xf2 || in[0] == 0x64 || in[0] == 0x65) {
		if in[0] == 0x64 || in[0] == 0x65 { // a segment; the others say how the target may be reached
			code = append(code, in[0])
		}
		in = in[1:]
	}
	prefix := rex(reg, 0)
	if len(in) > 0 && in[0]&0xf0 == 0x40 {
		prefix |= in[0] & 3
		in = in[1:]
	}
	if len(in) < 2 || in[0] != 0xff || in[1]>>3&7 != 2 && in[1]>>3&7 != 4 {
		return nil
	}
	code = append(code, prefix, opLoad, in[1]&^0x38|reg&7<<3)
	return append(code, in[2:]...)
}

// dispatch jumps to the copy of the target, without a change of registers or flags.
func (a *assembler) dispatch() {
	table := func(opcode, reg uint8, at uint64) { // mov at(,%rdx,8), reg
		a.Write([]byte{rex(reg, 0), opcode, reg&7<<3 | 4, 0xd5})
		a.Word(a.x.data + at)
	}
	back := func() {
		a.word(opLoad, hardA, wordA)
		a.word(opLoad, hardC, wordC)
		a.word(opLoad, hardD, wordD)
	}
	a.word(opStore, hardA, wordA)
	a.word(opStore, hardC, wordC)
	a.word(opStore, hardD, wordD)
	a.word(opLoad, hardA, wordTarget)
	a.Write([]byte{0x0f, 0xb7, 0xd0}) // movzwl %ax, %edx
	table(opLoad, hardC, tableAt)
	a.Write([]byte{0x48, 0x8d, 0x0c, 0x01}) // lea (%rcx,%rax), %rcx
	a.Write([]byte{0xe3, 0})                // jrcxz found
	from := a.Len()
	back()
	a.WriteByte(tracee.Int3)
	a.misses = append(a.misses, a.Here())
	a.Bytes()[from-1] = byte(a.Len() - from)
	table(opLoad, hardA, tableCodeAt)
	a.word(opStore, hardA, wordJump)
	back()
	a.Write([]byte{0xff, 0x24, 0x25}) // jmp *wordJump
	a.Word(a.x.data + wordJump)
}
