package failure

import (
	"fmt"
	"math/big"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

// bus judges SIGBUS: memory that is mapped without contents, an alignment check, broken hardware,
// or a stack segment fault, which a non-canonical address through rsp or rbp causes
// (arch/x86/kernel/traps.c).
func (j *judge) bus(f *evidence.Failure) {
	if f.Signal.Code == siginfo.Kernel {
		j.protectionFault(f)
		if f.Kind == evidence.UnknownFailure {
			f.Kind = evidence.BusError
		}
		return
	}
	f.Kind = evidence.BusError
	addr := f.Signal.Addr
	f.Fault = &evidence.Fault{Addr: addr, Place: j.process.Place(addr), Proof: evidence.FromCore}
	if j.cpu.fetched(addr) {
		f.Fault.Access, f.Instruction = evidence.Execute, nil
	} else if c := j.cpu.culpritFor(addr); c.op != nil {
		f.Fault.Access, f.Fault.Size = c.op.Access, c.op.Size
	}
	switch f.Signal.Code {
	case busAdrAln:
		f.Message = evidence.Say("the address is not aligned and the program asked for alignment checks")
	case busMceErrA, busMceErrB:
		f.Message = evidence.Say("the hardware reported broken memory")
	default:
		if m := j.process.MappingAt(addr); m != nil && m.Path != "" {
			f.Message = evidence.Say(fmt.Sprintf("beyond the end of %s (file offset %#x)", m.Path, m.Offset+uint64(addr-m.Start)))
		}
	}
}

// arithmetic judges SIGFPE. The processor raises one exception for a zero
// divisor and for a quotient that does not fit (Intel SDM volume 3, 6.15,
// interrupt 0), so the divisor's value decides.
func (j *judge) arithmetic(f *evidence.Failure) {
	f.Kind = evidence.ArithmeticError
	if f.Signal.Code != fpeIntDiv {
		return
	}
	f.Kind, f.Proof = evidence.DivisionByZero, evidence.Inferred
	divisor, err := j.cpu.divisor()
	switch {
	case err != nil:
		j.limits.limit("", "the divisor cannot be read, so division by zero is an assumption: "+err.Error())
	case divisor == 0:
		f.Proof = evidence.FromCore
	default:
		f.Kind, f.Proof = evidence.DivisionOverflow, evidence.FromCore
	}
	if err == nil {
		f.Division = j.cpu.division(divisor)
	}
}

func (c *processor) divisor() (uint64, error) {
	if c.inst == nil || (c.inst.Op != "div" && c.inst.Op != "idiv") {
		return 0, fmt.Errorf("the instruction at %v is no division", c.pc())
	}
	for i := range c.inst.Operands {
		op := &c.inst.Operands[i]
		if op.Implicit || op.IsImm {
			continue
		}
		if !op.IsMemory {
			v, ok := c.register(op.Reg)
			if !ok {
				return 0, fmt.Errorf("register %s is not known", op.RegName)
			}
			return part(v, op.RegName, op.Size), nil
		}
		addr, ok := c.effective(&op.Memory)
		if !ok || op.Size < 1 || op.Size > 8 {
			return 0, fmt.Errorf("the address of its operand is not known")
		}
		b := make([]byte, op.Size)
		if _, err := c.ReadMemory(addr, b); err != nil {
			return 0, fmt.Errorf("divisor: %w", err)
		}
		return leUint(b), nil
	}
	return 0, fmt.Errorf("the division at %v has no operand", c.pc())
}

// division has the numbers of the instruction, which is a division by divisor; nil if a register is not known.
func (c *processor) division(divisor uint64) *evidence.Division {
	size := 0
	for _, op := range c.inst.Operands {
		if !op.Implicit && !op.IsImm {
			size = op.Size
		}
	}
	low, lowKnown := c.register(x86.RAX)
	high, highKnown := c.register(x86.RDX)
	if size == 1 {
		low, high, highKnown = low&0xff, low>>8, lowKnown // the dividend is ax
	}
	if !lowKnown || !highKnown || size <= 0 {
		return nil
	}
	signed := c.inst.Op == "idiv"
	return &evidence.Division{Dividend: number(size, signed, high, low).String(), Divisor: number(size, signed, divisor).String(),
		Bits: 8 * size, Signed: signed}
}

// divides reports whether the instruction is a division that is impossible.
func (c *processor) divides() bool {
	divisor, err := c.divisor()
	if err != nil {
		return false
	}
	d := c.division(divisor)
	return divisor == 0 || d != nil && !fits(d)
}

// fits reports whether the quotient has the size of the divisor, which is not zero.
func fits(d *evidence.Division) bool {
	dividend, ok := new(big.Int).SetString(d.Dividend, 10)
	divisor, known := new(big.Int).SetString(d.Divisor, 10)
	if !ok || !known || divisor.Sign() == 0 {
		return false
	}
	quotient := new(big.Int).Quo(dividend, divisor)
	if !d.Signed {
		return quotient.BitLen() <= d.Bits
	}
	half := new(big.Int).Lsh(big.NewInt(1), uint(d.Bits-1))
	return quotient.Cmp(half) < 0 && quotient.Cmp(new(big.Int).Neg(half)) >= 0
}

// number is that of words of the same size in bytes, the highest first.
func number(size int, signed bool, words ...uint64) *big.Int {
	bits := uint(8 * size)
	n := new(big.Int)
	for _, w := range words {
		n.Lsh(n, bits).Or(n, new(big.Int).SetUint64(part(w, "", size)))
	}
	if width := bits * uint(len(words)); signed && n.Bit(int(width)-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), width))
	}
	return n
}

// illegal judges SIGILL. Compilers emit ud2 for code that must not be reached. Any other code is no
// instruction of this processor.
func (j *judge) illegal(f *evidence.Failure) {
	f.Kind = evidence.IllegalInsn
	if j.cpu.inst == nil {
		f.Message = evidence.Say(j.cpu.undecodable())
		return
	}
	switch j.cpu.inst.Op {
	case "ud2":
		f.Kind = evidence.TrapInsn
		f.Message = evidence.Say("ud2, which compilers emit for __builtin_trap and for code that must not be reached")
	case "ud1", "ud0":
		f.Kind = evidence.TrapInsn
	}
}

func (c *processor) undecodable() string {
	var b [8]byte
	n, err := c.ReadMemory(c.pc(), b[:])
	if n == 0 {
		return fmt.Sprintf("the bytes at %v cannot be read: %v", c.pc(), err)
	}
	return fmt.Sprintf("the bytes at %v are % x", c.pc(), b[:n])
}

// trap judges SIGTRAP. The instruction pointer is after the int3.
func (j *judge) trap(f *evidence.Failure) {
	f.Kind = evidence.TrapInsn
	inst, err := decode(j.process, j.cpu.pc()-1)
	if err == nil && inst != nil && inst.Op == "int3" && inst.Len == 1 {
		j.cpu.inst = inst
		f.Instruction = j.cpu.describe(inst)
		f.Message = evidence.Say("int3, a breakpoint instruction in the program")
	}
}

// systemCall judges SIGSYS. A seccomp filter that traps or kills rolls the
// call back, so its number is in rax again (kernel/seccomp.c).
func (j *judge) systemCall(f *evidence.Failure) {
	f.Kind = evidence.BadSystemCall
	number := j.cpu.regs.OrigRAX
	if rax, ok := j.cpu.regs.Get(image.RAX); number < 0 && ok {
		number = int64(rax)
	}
	f.Instruction = nil
	text := fmt.Sprintf("%s (%d)", systemCallName(number), number)
	if f.Signal.Code == sysSeccomp {
		text += " is forbidden by the process's seccomp filter"
	}
	f.Message = evidence.Say(text)
	f.Signal.Addr, f.Signal.HasAddr = j.cpu.pc(), f.Signal.Number == int(unix.SIGSYS)
}
