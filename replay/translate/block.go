package translate

import (
	"slices"
	"strings"

	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// block is code that is executed from its start on, up to a jump, a call or a return.
type block struct {
	id    uint32
	code  []instruction
	start uint64 // of the copy
	size  int    // of a record, in bytes
	free  uint8  // the hardware number of a register that the code does not name: it points to the record
	reg   x86.Reg
	next  uint64 // where it continues if the last instruction is no jump
	// last are the last writes of the registers; repeats: one of its instructions does.
	last    []write
	repeats bool
}

// instruction is an instruction of a block. The stores after it put registers into places of the record.
type instruction struct {
	inst   *x86.Inst
	writes []write
	// repeats: it is executed so many times as rcx says.
	repeats bool
	// condition is the place of the byte that says whether a conditional move moves; 0: the instruction is none.
	condition int
	// from and to are the copy without the stores; stored is the end of the stores.
	from, to, stored uint64
}

type write struct {
	reg x86.Reg
	at  int
}

// The bounds of a block, and of the blocks that are translated at once, along direct jumps and calls.
const (
	mostInstructions = 64
	mostRecord       = 1024
	mostAtOnce       = 128
	wordSize         = 8
)

// find decodes the block at a pc. nil: its first instruction is not translated.
func (x *Translator) find(pc uint64) *block {
	b := &block{size: wordSize, next: pc}
	named := uint32(1 << x86.RSP)
	for len(b.code) < mostInstructions && b.size < mostRecord {
		inst := x.decode(b.next)
		if inst == nil || !translatable(inst) {
			break
		}
		with := named | names(inst)
		if with == 1<<16-1 {
			break // no register is left
		}
		named = with
		b.add(inst)
		b.next += uint64(inst.Len)
		if inst.Flow != x86.FlowNext {
			break
		}
	}
	if len(b.code) == 0 {
		return nil
	}
	for r := x86.RAX; r.General(); r++ {
		if named&(1<<r) == 0 {
			b.reg, b.free = r, r.Encoding()
		}
	}
	b.sumUp()
	return b
}

func (b *block) add(inst *x86.Inst) {
	i := instruction{inst: inst, repeats: inst.Repeats()}
	if strings.HasPrefix(inst.Op, "cmov") {
		i.condition = b.size
		b.size += wordSize
	}
	if inst.Flow == x86.FlowNext {
		for _, r := range inst.Written() {
			i.writes = append(i.writes, write{r, b.size})
			b.size += wordSize
		}
	}
	b.code = append(b.code, i)
}

// sumUp notes what a record as a whole does to the registers.
func (b *block) sumUp() {
	var written uint32
	for k := range slices.Backward(b.code) {
		i := &b.code[k]
		b.repeats = b.repeats || i.repeats
		for _, w := range slices.Backward(i.writes) {
			if written&(1<<w.reg) == 0 {
				b.last = append(b.last, w)
			}
			written |= 1 << w.reg
		}
	}
}

// names are the general registers that an instruction names or implies, a bit each.
func names(inst *x86.Inst) (set uint32) {
	add := func(r x86.Reg) {
		if r.General() {
			set |= 1 << r
		}
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		switch {
		case o.IsMemory:
			add(o.Memory.Base)
			add(o.Memory.Index)
		case !o.IsImm:
			add(o.Reg)
		}
	}
	return set
}

// stepped are instructions that the program executes at their own address: they trap for the recorder, depend on the
// debugger, or use registers that no operand tells.
var stepped = map[string]bool{"rdtsc": true, "rdtscp": true, "rdpid": true, "rdpru": true, "rdpmc": true, "cpuid": true, "xgetbv": true,
	"popf": true, "popfd": true, "popfq": true, "pushf": true, "pushfd": true, "pushfq": true, "rdrand": true, "rdseed": true, "xlat": true, "xlatb": true, "monitor": true, "mwait": true,
	"wrfsbase": true, "wrgsbase": true, "rdfsbase": true, "rdgsbase": true, "swapgs": true, "xbegin": true, "xend": true, "xabort": true, "xtest": true,
	"hlt": true, "cli": true, "sti": true, "int": true, "int1": true, "int3": true, "into": true, "icebp": true, "iret": true, "iretd": true, "iretq": true, "uiret": true,
	"maskmovq": true, "maskmovdqu": true, "vmaskmovdqu": true, "enter": true, "rdpkru": true, "wrpkru": true}

// translatable reports whether a copy of the instruction does the same. The x87 unit notes the address of its last
// instruction, and xsave the processor's state; a segment register or a far jump concerns the kernel.
func translatable(inst *x86.Inst) bool {
	if stepped[inst.Op] || strings.HasPrefix(inst.Op, "f") || strings.HasPrefix(inst.Op, "x") && (strings.Contains(inst.Op, "save") || strings.Contains(inst.Op, "rstor")) {
		return false
	}
	switch inst.Flow {
	case x86.FlowNext:
		return ordinary(inst)
	case x86.FlowBranch:
		return patch.BranchOpcode(inst) != nil || patch.CountedBranch(inst) && inst.Bytes[0] == 0xe3 // jrcxz
	case x86.FlowJump:
		return inst.HasTarget && patch.BranchOpcode(inst) != nil || !inst.HasTarget && loadOf(inst, 0) != nil
	case x86.FlowCall:
		return inst.HasTarget && inst.Bytes[0] == 0xe8 || !inst.HasTarget && loadOf(inst, 0) != nil
	case x86.FlowReturn:
		return returns(inst)
	}
	return false
}

// ordinary reports whether the registers after the instruction follow from the log.
func ordinary(inst *x86.Inst) bool {
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory && !o.IsImm && o.Reg == x86.RegNone && o.RegName != "" {
			return false // a segment, control or debug register
		}
		if o.IsMemory && o.Memory.Addr32 && inst.Repeats() {
			return false
		}
	}
	return !inst.Repeats() || !strings.HasPrefix(inst.Op, "lods") && !strings.HasPrefix(inst.Op, "ins") && !strings.HasPrefix(inst.Op, "outs")
}

// returns reports whether an instruction is a near return, without or with the number of bytes to drop.
func returns(inst *x86.Inst) bool {
	switch code := inst.Bytes; {
	case inst.Op != "ret":
		return false
	case inst.Len == 1:
		return code[0] == 0xc3
	case inst.Len == 2:
		return code[0] == 0xf3 && code[1] == 0xc3
	default:
		return inst.Len == 3 && code[0] == 0xc2
	}
}

// dropped is how much a return adds to the stack pointer.
func dropped(inst *x86.Inst) uint64 {
	if inst.Len == 3 {
		return wordSize + uint64(inst.Bytes[1]) + uint64(inst.Bytes[2])<<8
	}
	return wordSize
}

// decode returns the instruction at a pc, of code that the process cannot write; nil: none is translated.
func (x *Translator) decode(pc uint64) *x86.Inst {
	if x.stops[pc] {
		return nil
	}
	if inside, err := x.process.InLibrary(pc); err != nil || inside {
		return nil
	}
	code := x.source.read(pc, tracee.LongestInstruction)
	inst, err := x86.Decode(code, pc)
	if err != nil || inst.Len > len(code) {
		return nil
	}
	return &inst
}
