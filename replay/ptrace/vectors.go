package ptrace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// VectorDigest returns a digest of all registers of a stopped thread that are not general ones: those of the
// XSAVE area (Intel SDM volume 1, 13.4). Registers in their initial state count by their values, since
// whether the processor considers them in use depends on when the kernel switched tasks. The kernel fills in
// the values (arch/x86/kernel/fpu/xstate.c, copy_xstate_to_uabi_buf).
func VectorDigest(tid int) (uint64, error) {
	area, err := GetRegset(tid, RegsetXState)
	if err != nil {
		return 0, err
	}
	const (
		status, pointers, pointersEnd = 2, 6, 24 // FSW; FOP, FIP and FDP
		summary                       = 0x80     // an exception is pending
		reserved, header, headerEnd   = 464, 512, 576
	)
	if len(area) < headerEnd {
		return 0, fmt.Errorf("ptrace: %d bytes of extended registers of thread %d", len(area), tid)
	}
	if area[status]&summary == 0 {
		clear(area[pointers:pointersEnd]) // some processors store them only then
	}
	clear(area[reserved:headerEnd])
	sum := sha256.Sum256(area)
	return binary.LittleEndian.Uint64(sum[:]), nil
}
