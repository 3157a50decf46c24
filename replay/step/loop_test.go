package step

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// A loop inside of an iteration of another loop is left.
func TestLoopInside(t *testing.T) {
	code := map[uint64]*x86.Inst{
		0x10: {Len: 1}, // the head of the outer loop
		0x11: {Len: 1},
		0x12: {Len: 1, Flow: x86.FlowBranch, Target: 0x11, HasTarget: true},
		0x13: {Len: 1, Flow: x86.FlowBranch, Target: 0x10, HasTarget: true},
	}
	decode := func(pc uint64) *x86.Inst { return code[pc] }
	nothing := func() []Stepped { return nil }
	var l loop
	left := func(pcs ...uint64) []uint64 {
		for _, pc := range pcs {
			if exits, ready := l.next(pc, code[pc], decode, nothing, func(evidence.Addr) bool { return true }); ready {
				return exits
			}
		}
		return nil
	}
	for range 3 { // the outer loop's head is known
		left(0x10, 0x11, 0x12, 0x13)
	}
	left(0x10)
	turns := 0
	var exits []uint64
	for ; turns < 4*loopSame && exits == nil; turns++ {
		exits = left(0x11, 0x12)
	}
	if len(exits) != 1 || exits[0] != 0x13 {
		t.Errorf("after %d turns it is left by %#x", turns, exits)
	}
}
