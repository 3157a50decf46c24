package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// maxInstruction is the longest x86 instruction (Intel SDM volume 2, 2.3.11).
const maxInstruction = 15

// processor is the processor at one instruction: the registers, and the values that the instruction
// reads, writes and needs.
type processor struct {
	*process
	regs *image.Registers
	// inst is the instruction at the pc; nil when its bytes cannot be read or
	// decoded.
	inst *x86.Inst
}

func newProcessor(p *process, regs *image.Registers) *processor {
	inst, err := decode(p, regs.PC())
	if err != nil {
		inst = nil
	}
	return &processor{process: p, regs: regs, inst: inst}
}

func (c *processor) pc() evidence.Addr { return c.regs.PC() }

// decode disassembles the instruction at pc.
func decode(mem image.Memory, pc evidence.Addr) (*x86.Inst, error) {
	var code [maxInstruction]byte
	n, err := mem.ReadMemory(pc, code[:])
	if n == 0 {
		return nil, err
	}
	inst, err := x86.Decode(code[:n], uint64(pc))
	if err != nil {
		return nil, err
	}
	return &inst, nil
}
