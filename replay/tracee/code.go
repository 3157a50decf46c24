package tracee

import "diagnose/image/x86"

// LongestInstruction in bytes (Intel SDM volume 2, 2.3.11).
const LongestInstruction = 15

// Instruction returns the program's instruction at a pc; nil if there is none.
func (p *Process) Instruction(pc uint64) *x86.Inst { return p.Memory.Instruction(pc) }

// ReadCode reads as much code as is readable, and returns its length.
func (p *Process) ReadCode(into []byte, pc uint64) int { return p.Memory.ReadCode(into, pc) }

// Instruction returns the program's instruction at a pc; nil if there is none.
func (m *Memory) Instruction(pc uint64) *x86.Inst { return decode(m.ReadAt, pc) }

// placedInstruction returns the instruction that a thread executes at a pc, but for traps of
// breakpoints: it may be a jump that Replace has put there. nil if there is none.
func (m *Memory) placedInstruction(pc uint64) *x86.Inst { return decode(m.ReadPlaced, pc) }

// ReadCode reads as much code as is readable, and returns its length.
func (m *Memory) ReadCode(into []byte, pc uint64) int { return readCode(m.ReadAt, into, pc) }

// readAt is ReadAt of an io.ReaderAt.
type readAt func(p []byte, at int64) (int, error)

func decode(read readAt, pc uint64) *x86.Inst {
	var code [LongestInstruction]byte
	n := readCode(read, code[:], pc)
	inst, err := x86.Decode(code[:n], pc)
	if err != nil {
		return nil
	}
	return &inst
}

func readCode(read readAt, into []byte, pc uint64) int {
	for n := len(into); n > 0; n-- {
		if _, err := read(into[:n], int64(pc)); err == nil {
			return n
		}
	}
	return 0
}
