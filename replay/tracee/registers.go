package tracee

import (
	"encoding/binary"
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// ReadMemory implements image.Memory for the replayed process.
func (p *Process) ReadMemory(addr evidence.Addr, into []byte) (int, error) {
	return p.Memory.ReadAt(into, int64(addr))
}

// OpenImage opens the stopped process for analysis, until a thread resumes. It has the program's own
// text.
func (p *Process) OpenImage(failing *Thread) (*image.Process, error) {
	if err := p.Memory.liftTraps(); err != nil {
		return nil, err
	}
	if err := p.LiftProtection(); err != nil {
		return nil, err
	}
	traced := image.Traced{PID: p.PID, Failing: -1}
	var numbers []int
	for _, t := range p.SortedThreads() {
		regs, err := p.NamedRegisters(t)
		if err != nil {
			return nil, err
		}
		general, err := binary.Append(nil, binary.LittleEndian, &regs)
		if err != nil {
			return nil, err
		}
		floating, err := ptrace.GetRegset(t.TID, ptrace.RegsetFP)
		if err != nil {
			return nil, err
		}
		if t == failing {
			traced.Failing = len(traced.Threads)
		}
		x := image.TracedThread{TID: t.TID, General: general, Floating: floating}
		if t.Final != nil && t.Final.Info != nil {
			x.Siginfo = t.Final.Info[:]
		}
		traced.Threads = append(traced.Threads, x)
		numbers = append(numbers, int(t.Index))
	}
	opened, err := image.OpenTraced(traced, p.ImageOptions)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	for i, n := range numbers {
		if n != 0 {
			opened.Threads[i].Ref.Number = n
		}
	}
	return opened, nil
}

// MomentOf returns where a thread is.
func (p *Process) MomentOf(t *Thread) (evidence.Moment, error) {
	if t.Index == 0 {
		if err := p.Identify(t); err != nil {
			return evidence.Moment{}, nil // before its first event
		}
	}
	r, err := p.ReadThread(t.Index)
	if err != nil {
		return evidence.Moment{}, err
	}
	regs, err := p.ProgramRegisters(t)
	if err != nil {
		return evidence.Moment{}, err
	}
	return evidence.Moment{Thread: t.Index, Ordinal: r.Ordinal, PC: evidence.Addr(regs.Rip), Count: 1}, nil
}

// ProgramRegisters returns the registers with which the program continues in a stopped thread.
func (p *Process) ProgramRegisters(t *Thread) (ptrace.Registers, error) {
	regs, _, err := p.registersAndFrame(t)
	return regs, err
}

// NamedRegisters is ProgramRegisters, but if the pc is in a stub, which no unwind table covers,
// the pc is that in the program's own text.
func (p *Process) NamedRegisters(t *Thread) (ptrace.Registers, error) {
	regs, frame, err := p.registersAndFrame(t)
	switch {
	case err != nil || frame == nil || frame.Kind != agent.EntrySyscall && frame.Kind != agent.EntryInsn:
	case frame.R11 != frame.RFlags || frame.RCX != frame.RIP:
		regs.Rip = frame.R11
	case frame.Kind == agent.EntrySyscall: // the call is done, as the instruction leaves rcx and r11
		regs.Rip, err = p.outOfStub(frame)
	}
	return regs, err
}

// outOfStub returns the pc in the program's own text of a thread that leaves a stub (struct dg_stub in
// agent/src/engine/engine.h): after the system call, or before it if it is made again.
func (p *Process) outOfStub(f *agent.RawFrame) (uint64, error) {
	const load, call = 7, 2 // the bytes of lea info(%rip),%rcx, with which a stub begins, and of syscall
	var code [load]byte
	if _, err := p.ReadMemory(evidence.Addr(f.Origin), code[:]); err != nil {
		return 0, fmt.Errorf("replay: stub at %#x: %w", f.Origin, err)
	}
	distance := int32(binary.LittleEndian.Uint32(code[3:]))
	info, err := ReadStruct[rawStub](p.Memory, f.Origin+load+uint64(int64(distance)))
	if err != nil {
		return 0, fmt.Errorf("replay: stub at %#x: %w", f.Origin, err)
	}
	switch {
	case code[0] != 0x48 || code[1] != 0x8d || code[2] != 0x0d || info.Origin != f.Origin:
		return 0, fmt.Errorf("replay: there is no stub at %#x", f.Origin)
	case f.RIP == f.Origin:
		return info.Resume - call, nil
	}
	return info.Resume, nil
}

// rawStub is struct dg_stub of agent/src/engine/engine.h.
type rawStub struct{ Go, Resume, Origin, Skip, Kind uint64 }

func (p *Process) registersAndFrame(t *Thread) (ptrace.Registers, *agent.RawFrame, error) {
	if t.Final != nil {
		regs := t.Final.Regs
		p.OutOfCopies(&regs)
		return p.underEngine(t.Index, regs, t.Final.Inside)
	}
	regs, err := ptrace.GetRegisters(t.TID)
	p.OutOfCopies(&regs)
	if err != nil || t.Index == 0 {
		return regs, nil, err
	}
	r, err := p.ReadThread(t.Index)
	if err != nil {
		return regs, nil, err
	}
	return p.underEngine(t.Index, regs, r.Inside)
}

// underEngine returns, for a thread in the engine, the registers that the engine has saved.
func (p *Process) underEngine(index uint32, regs ptrace.Registers, inside uint64) (ptrace.Registers, *agent.RawFrame, error) {
	if inside == 0 {
		return regs, nil, nil
	}
	f, err := ReadStruct[agent.RawFrame](p.Memory, inside)
	if err != nil {
		return regs, nil, fmt.Errorf("replay: frame of thread %d: %w", index, err)
	}
	return UnderFrame(regs, f), f, nil
}

// UnderFrame returns the registers with those that a frame of the engine has saved in place of the
// current ones.
func UnderFrame(regs ptrace.Registers, f *agent.RawFrame) ptrace.Registers {
	regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx, regs.Rsi, regs.Rdi, regs.Rbp = f.RAX, f.RBX, f.RCX, f.RDX, f.RSI, f.RDI, f.RBP
	regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15 = f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15
	regs.Rip, regs.Rsp, regs.Eflags = f.RIP, f.RSP, f.RFlags
	regs.Orig_rax = ^uint64(0)
	return regs
}

// GeneralRegisters returns the general registers by DWARF number.
func GeneralRegisters(regs *ptrace.Registers) [16]uint64 {
	return [16]uint64{regs.Rax, regs.Rdx, regs.Rcx, regs.Rbx, regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
}

// ImageRegisters converts the registers of ptrace(2).
func ImageRegisters(regs *ptrace.Registers) *image.Registers {
	var r image.Registers
	for reg, value := range GeneralRegisters(regs) {
		r.Set(image.Register(reg), value)
	}
	r.Set(image.RIP, regs.Rip)
	r.FSBase, r.GSBase, r.OrigRAX = evidence.Addr(regs.Fs_base), evidence.Addr(regs.Gs_base), -1
	return &r
}

// OperandAddress computes the address of a memory operand from the registers before the
// instruction.
func OperandAddress(o *x86.Operand, regs *ptrace.Registers) (uint64, bool) {
	values := GeneralRegisters(regs)
	addr, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) {
		if !r.General() {
			return 0, false
		}
		return values[r], true
	})
	return addr + SegmentBase(o, regs), known
}

// SegmentBase returns the base of the segment of a memory operand.
func SegmentBase(o *x86.Operand, regs *ptrace.Registers) uint64 {
	switch o.Memory.Segment {
	case x86.SegFS:
		return regs.Fs_base
	case x86.SegGS:
		return regs.Gs_base
	}
	return 0
}

// StackLow returns the low end of a thread's stack. The first thread's stack grows as far as the
// engine allows (dg_stack_low).
func StackLow(r *agent.RawRThread) uint64 {
	const most = 128 << 20
	if r.StackLow == 0 && r.StackHigh > most {
		return r.StackHigh - most
	}
	return r.StackLow
}

// RedZone is the memory below the stack pointer that a function may use (System V ABI for x86-64,
// section 3.2.2).
const RedZone = 128

// StatusFlags are the flags of arithmetic and the direction flag. The others belong to the kernel
// and the debugger.
const StatusFlags = 0xcd5
