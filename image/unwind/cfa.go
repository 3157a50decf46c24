package unwind

import (
	"diagnose/evidence"
	"diagnose/image"
)

// FrameAddress returns how the call frame table computes the canonical frame address of the innermost frame at a pc: a register plus
// an offset. ok is false if it says so in no such way.
func (u *Unwinder) FrameAddress(pc evidence.Addr) (base image.Register, offset int64, ok bool) {
	m := u.process.ModuleAt(pc)
	if m == nil || u.isSigreturn(pc) {
		return 0, 0, false
	}
	r, ok, err := u.modules.of(u.process, m).row(pc)
	if err != nil || !ok || r.signal || r.outermost || r.cfa.kind != ruleRegister {
		return 0, 0, false
	}
	return r.cfa.reg, r.cfa.offset, true
}
