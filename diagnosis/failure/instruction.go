package failure

import (
	"encoding/hex"
	"fmt"
	"math/big"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// addInstruction disassembles the instruction under judgement and reads the
// values of its operands.
func (j *judge) addInstruction(f *evidence.Failure) {
	j.cpu = newProcessor(j.process, j.stack.registers())
	if j.cpu.inst != nil {
		f.Instruction = j.cpu.describe(j.cpu.inst)
	}
}

func (c *processor) describe(inst *x86.Inst) *evidence.Instruction {
	out := &evidence.Instruction{
		PC:    evidence.Addr(inst.PC),
		Bytes: hex.EncodeToString(inst.Bytes),
		Text:  inst.Text(),
	}
	for i := range inst.Operands {
		op := c.operand(&inst.Operands[i])
		op.Text = inst.OperandText(i)
		out.Operands = append(out.Operands, op)
	}
	return out
}

func (c *processor) operand(op *x86.Operand) evidence.Operand {
	out := evidence.Operand{Access: op.Access}
	switch {
	case op.IsImm:
		out.Value.Text = fmt.Sprintf("%d", op.Imm)
	case op.IsMemory:
		c.memoryOperand(op, &out)
	default:
		c.registerOperand(op, &out)
	}
	return out
}

func (c *processor) registerOperand(op *x86.Operand, out *evidence.Operand) {
	if op.Reg == x86.RegVector {
		out.Value = c.vector(op.RegName, op.Size)
		return
	}
	v, ok := c.register(op.Reg)
	if !ok {
		out.Value = evidence.NoValue("the register is not known in this frame")
		return
	}
	out.Registers = []evidence.Register{{Name: image.Register(op.Reg).String(), Value: evidence.Addr(v)}}
	out.Value = integer(part(v, op.RegName, op.Size), op.Size)
}

// part extracts the named part of a full register.
func part(v uint64, name string, size int) uint64 {
	if len(name) == 2 && name[1] == 'h' {
		v >>= 8
	}
	if size > 0 && size < 8 {
		v &= 1<<(8*size) - 1
	}
	return v
}

func integer(v uint64, size int) evidence.Value {
	out := evidence.Value{Text: fmt.Sprintf("%#x", v)}
	if size == 8 || size == 0 {
		a := evidence.Addr(v)
		out.Address = &a
	}
	return out
}

func (c *processor) vector(name string, size int) evidence.Value {
	var number int
	state := c.regs.Vector
	if _, err := fmt.Sscanf(name, "xmm%d", &number); err != nil || number < 0 || number > 15 {
		return evidence.NoValue("of vector registers only the low halves of xmm0 to xmm15 are read")
	}
	if state == nil {
		return evidence.NoValue("vector registers are not known in this frame")
	}
	return littleEndian(state[number][:bounded(size, 16)])
}

func bounded(size, most int) int {
	if size <= 0 || size > most {
		return most
	}
	return size
}

// littleEndian shows bytes of any width as one number.
func littleEndian(b []byte) evidence.Value {
	reversed := make([]byte, len(b))
	for i, c := range b {
		reversed[len(b)-1-i] = c
	}
	return evidence.Value{Text: "0x" + new(big.Int).SetBytes(reversed).Text(16)}
}

// maxOperand is the widest operand that is read. People do not compare wider state (xsave).
const maxOperand = 64

func (c *processor) memoryOperand(op *x86.Operand, out *evidence.Operand) {
	out.Registers = c.addressRegisters(&op.Memory)
	addr, ok := c.effective(&op.Memory)
	if !ok {
		out.Value.Unavailable = "its address cannot be computed from the registers"
		return
	}
	out.Address = &addr
	if op.Access == "" {
		return
	}
	if op.Size <= 0 || op.Size > maxOperand {
		out.Value.Unavailable = "its width is not fixed"
		return
	}
	b := make([]byte, op.Size)
	if _, err := c.ReadMemory(addr, b); err != nil {
		out.Value.Unavailable = err.Error()
		return
	}
	out.Value = littleEndian(b)
	if op.Size == 8 {
		out.Value = integer(leUint(b), 8)
	}
}

func leUint(b []byte) uint64 {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (c *processor) register(r x86.Reg) (uint64, bool) {
	if r > x86.RIP {
		return 0, false
	}
	return c.regs.Get(image.Register(r))
}

func (c *processor) addressRegisters(m *x86.Memory) []evidence.Register {
	var out []evidence.Register
	for _, r := range []x86.Reg{m.Base, m.Index} {
		if v, ok := c.register(r); ok && r != x86.RIP {
			out = append(out, evidence.Register{Name: image.Register(r).String(), Value: evidence.Addr(v)})
		}
	}
	return out
}

// effective computes a memory operand's address from the registers.
func (c *processor) effective(m *x86.Memory) (evidence.Addr, bool) {
	addr, ok := m.Address(c.register)
	if !ok {
		return 0, false
	}
	switch m.Segment {
	case x86.SegFS:
		addr += uint64(c.regs.FSBase)
	case x86.SegGS:
		addr += uint64(c.regs.GSBase)
	}
	return evidence.Addr(addr), true
}
