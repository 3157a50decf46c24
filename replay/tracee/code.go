package tracee

import "diagnose/image/x86"

// LongestInstruction in bytes (Intel SDM volume 2, 2.3.11).
const LongestInstruction = 15

// Instruction returns the program's instruction at a pc; nil if there is none.
func (p *Process) Instruction(pc uint64) *x86.Inst { return p.Memory.Instruction(pc) }

// ReadCode reads as much code as is readable, and returns its length.
func (p *Process) ReadCode(into []byte, pc uint64) int { return p.Memory.ReadCode(into, pc) }

// Instruction returns the program's instruction at a pc; nil if there is none.
func (m *Memory) Instruction(pc uint64) *x86.Inst {
	var code [LongestInstruction]byte
	n := m.ReadCode(code[:], pc)
	inst, err := x86.Decode(code[:n], pc)
	if err != nil {
		return nil
	}
	return &inst
}

// ReadCode reads as much code as is readable, and returns its length.
func (m *Memory) ReadCode(into []byte, pc uint64) int {
	for n := len(into); n > 0; n-- {
		if _, err := m.ReadAt(into[:n], int64(pc)); err == nil {
			return n
		}
	}
	return 0
}
