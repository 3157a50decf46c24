package patch

import (
	"strings"

	"diagnose/image/x86"
)

// FlagsReach is how many bytes of code are examined for a use of the flags.
const FlagsReach = 64

// FlagsUnread reports whether nothing reads the result flags from before pc: a later instruction
// sets all of them first, or the code calls or returns, which preserves none of them. The flags
// that the library leaves where it calls libc or returns differ between a recording and a replay.
func FlagsUnread(code []byte, pc uint64) bool {
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

// ResultFlags are carry, parity, adjust, zero, sign and overflow.
const ResultFlags = 0x8d5

// FlagWord is the result of lahf (ah) and seto (al) for rflags.
func FlagWord(flags uint64) uint64 { return flags&0xd5<<8 | 2<<8 | flags>>11&1 }

// FlagsOf is the inverse of FlagWord.
func FlagsOf(word uint64) uint64 { return word>>8&0xd5 | word&1<<11 }
