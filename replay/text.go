package replay

import "diagnose/image/x86"

// longestInstruction in bytes (Intel SDM volume 2, 2.3.11).
const longestInstruction = 15

// decode returns the program's instruction at a pc; nil if there is none.
func (p *process) decode(pc uint64) *x86.Inst {
	var code [longestInstruction]byte
	n := p.readCode(code[:], pc)
	inst, err := x86.Decode(code[:n], pc)
	if err != nil {
		return nil
	}
	return &inst
}

// readCode reads as much code as is readable, and returns its length.
func (p *process) readCode(into []byte, pc uint64) int {
	for n := len(into); n > 0; n-- {
		if _, err := p.memory.ReadAt(into[:n], int64(pc)); err == nil {
			return n
		}
	}
	return 0
}
