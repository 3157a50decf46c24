package ask

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// isCall reports whether the instruction at a pc is a call. A pc of 0 is no instruction.
func isCall(p *image.Process, pc evidence.Addr) bool {
	var code [15]byte
	n, err := p.ReadMemory(pc, code[:])
	if pc == 0 || n == 0 && err != nil {
		return false
	}
	inst, err := x86.Decode(code[:n], uint64(pc))
	return err == nil && inst.Flow == x86.FlowCall
}
