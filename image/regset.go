package image

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

const (
	// userRegsSize is sizeof(struct user_regs_struct) of x86-64, and
	// userRegs386Size that of i386 (sys/user.h).
	userRegsSize    = 27 * 8
	userRegs386Size = 17 * 4
	// fxsaveXMM is where FXSAVE, and XSAVE's legacy region, keep xmm0 (Intel
	// SDM volume 1, tables 10-2 and 13-1).
	fxsaveXMM = 160
)

// userRegsOrder is the order of struct user_regs_struct up to rip; orig_rax
// comes between rdi and rip.
var userRegsOrder = [...]Register{R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI}

// parseUserRegs reads a struct user_regs_struct.
func parseUserRegs(b []byte) (Registers, error) {
	var r Registers
	if len(b) < userRegsSize {
		return r, fmt.Errorf("register set of %d bytes, not %d", len(b), userRegsSize)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	for i, reg := range userRegsOrder {
		r.Set(reg, word(i))
	}
	r.OrigRAX = int64(word(15))
	r.Set(RIP, word(16))
	r.Flags = word(18)
	r.Set(RSP, word(19))
	r.FSBase, r.GSBase = evidence.Addr(word(21)), evidence.Addr(word(22))
	return r, nil
}

// VectorOf returns the xmm registers in an FXSAVE area; nil if it is too short.
func VectorOf(fxsave []byte) *VectorState { return parseFXSave(fxsave) }

// parseFXSave reads the xmm registers from an FXSAVE or XSAVE area; nil when
// it is too short.
func parseFXSave(b []byte) *VectorState {
	if len(b) < fxsaveXMM+16*16 {
		return nil
	}
	v := new(VectorState)
	for i := range v {
		copy(v[i][:], b[fxsaveXMM+16*i:])
	}
	return v
}
