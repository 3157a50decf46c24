package x86

import (
	"strconv"

	"golang.org/x/arch/x86/x86asm"
)

// register is a register as an operand names it.
type register struct {
	name string
	reg  Reg
	size int
}

var (
	// registers is indexed by x86asm's numbers.
	registers = newRegisters()
	// registerNames holds the general registers by name.
	registerNames = newRegisterNames()
)

func newRegisters() *[256]register {
	var t [256]register
	general := func(first x86asm.Reg, size int, names ...string) {
		for n, name := range names {
			t[int(first)+n] = register{name, encodedReg(uint8(n)), size}
		}
	}
	general(x86asm.AL, 1, "al", "cl", "dl", "bl")
	for n, name := range []string{"ah", "ch", "dh", "bh"} {
		t[int(x86asm.AH)+n] = register{name, encodedReg(uint8(n)), 1}
	}
	for n, name := range []string{"spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"} {
		t[int(x86asm.SPB)+n] = register{name, encodedReg(uint8(n + 4)), 1}
	}
	general(x86asm.AX, 2, "ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
		"r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w")
	general(x86asm.EAX, 4, "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
		"r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d")
	general(x86asm.RAX, 8, "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")
	numbered := func(first x86asm.Reg, count, size int, prefix string, reg Reg) {
		for n := range count {
			t[int(first)+n] = register{prefix + strconv.Itoa(n), reg, size}
		}
	}
	numbered(x86asm.F0, 8, 10, "st", RegVector)
	numbered(x86asm.M0, 8, 8, "mm", RegVector)
	numbered(x86asm.X0, 32, 16, "xmm", RegVector)
	numbered(x86asm.Y0, 32, 32, "ymm", RegVector)
	numbered(x86asm.Z0, 32, 64, "zmm", RegVector)
	numbered(x86asm.K0, 8, 8, "k", RegVector)
	numbered(x86asm.CR0, 16, 8, "cr", RegNone)
	numbered(x86asm.DR0, 16, 8, "dr", RegNone)
	for n, name := range []string{"es", "cs", "ss", "ds", "fs", "gs"} {
		t[int(x86asm.ES)+n] = register{name, RegNone, 2}
	}
	return &t
}

func newRegisterNames() map[string]register {
	m := make(map[string]register)
	for _, r := range registers {
		if r.name != "" && r.reg.General() {
			m[r.name] = r
		}
	}
	return m
}

// generalRegister returns the register with the processor's number n as an
// operand of size bytes names it; rex chooses spl over ah.
func generalRegister(n uint8, size int, rex bool) register {
	n &= 15
	switch size {
	case 1:
		if rex || n < 4 || n > 7 {
			return registers[int(x86asm.AL)+lowByte(n)]
		}
		return registers[int(x86asm.AH)+int(n)-4]
	case 2:
		return registers[int(x86asm.AX)+int(n)]
	case 4:
		return registers[int(x86asm.EAX)+int(n)]
	}
	return registers[int(x86asm.RAX)+int(n)]
}

// lowByte is the distance of a low-byte register from AL in x86asm's numbers,
// which has the four high bytes in between.
func lowByte(n uint8) int {
	if n < 4 {
		return int(n)
	}
	return int(n) + int(x86asm.SPB-x86asm.AH)
}
