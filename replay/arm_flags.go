package replay

import (
	"strings"

	"diagnose/image/x86"
)

// flagsReach is how far code is looked at for what becomes of the flags.
const flagsReach = 64

// flagsUnread reports whether nothing reads the flags of the results before pc:
// an instruction behind it sets all of them first, or the code calls or
// returns, over which nobody keeps them. What the library leaves in them where it
// calls libc and where it returns differs between a recording and a replay.
func flagsUnread(code []byte, pc uint64) bool {
	for len(code) > 0 {
		inst, err := x86.Decode(code, pc)
		if err != nil || inst.Len > len(code) {
			return false
		}
		switch inst.Flow {
		case x86.FlowNext:
		case x86.FlowCall, x86.FlowReturn:
			return true
		default:
			return false
		}
		switch inst.Op {
		case "cmp", "test", "add", "sub", "and", "or", "xor", "neg":
			return true
		case "lea", "push", "pop", "nop", "endbr64", "leave":
		default:
			if !strings.HasPrefix(inst.Op, "mov") {
				return false
			}
		}
		code, pc = code[inst.Len:], pc+uint64(inst.Len)
	}
	return false
}

// ignoreFlags makes flags that nobody reads no part of the place. A thread that
// arrives is given the recorded ones.
func (b *breakpoints) ignoreFlags(p *place) {
	code := make([]byte, flagsReach)
	if _, err := b.c.memory.ReadAt(code, int64(p.pc)); err != nil || !flagsUnread(code, p.pc) {
		return
	}
	p.results, p.unread = p.registers[contextFlags]&resultFlags, true
	p.flags &^= resultFlags
	p.registers[contextFlags] &= p.flags
}
