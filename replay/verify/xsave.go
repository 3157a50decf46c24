package verify

import (
	"encoding/binary"

	"diagnose/evidence"
)

// savedInUse reports whether a word that differs only says which registers the processor
// considered in use, in a header of xsavec (Intel SDM volume 1, 13.4.2 and 13.6). On some
// processors that depends on when the kernel switched tasks. The dynamic linker saves registers
// this way on the stack at the first call of each function, and a function that does not
// initialize its variables leaves the header there.
func (v *verifier) savedInUse(addr uint64, want, got []byte) bool {
	const (
		alignment = 64
		header    = 64
		compacted = 1 << 63
	)
	if len(want) != 8 || addr%alignment != 0 {
		return false
	}
	var recorded, replayed [header - 8]byte
	if n, err := v.core.ReadMemory(evidence.Addr(addr+8), recorded[:]); err != nil || n < len(recorded) {
		return false
	}
	if n, err := v.process.ReadMemory(evidence.Addr(addr+8), replayed[:]); err != nil || n < len(replayed) || recorded != replayed {
		return false
	}
	components := binary.LittleEndian.Uint64(recorded[:])
	for _, b := range recorded[8:] {
		if b != 0 {
			return false
		}
	}
	w, g := binary.LittleEndian.Uint64(want), binary.LittleEndian.Uint64(got)
	return components&compacted != 0 && (w|g)&^(components&^compacted) == 0
}
