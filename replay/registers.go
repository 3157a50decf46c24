package replay

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
func (p *process) ReadMemory(addr evidence.Addr, into []byte) (int, error) {
	return p.memory.ReadAt(into, int64(addr))
}

// openImage opens the stopped process for analysis.
func (p *process) openImage(failing *thread) (*image.Process, error) {
	traced := image.Traced{PID: p.pid, Failing: -1}
	var numbers []int
	for _, t := range p.sortedThreads() {
		regs, err := p.namedRegisters(t)
		if err != nil {
			return nil, err
		}
		general, err := binary.Append(nil, binary.LittleEndian, &regs)
		if err != nil {
			return nil, err
		}
		floating, err := ptrace.GetRegset(t.tid, ptrace.RegsetFP)
		if err != nil {
			return nil, err
		}
		if t == failing {
			traced.Failing = len(traced.Threads)
		}
		x := image.TracedThread{TID: t.tid, General: general, Floating: floating}
		if t.final != nil && t.final.info != nil {
			x.Siginfo = t.final.info[:]
		}
		traced.Threads = append(traced.Threads, x)
		numbers = append(numbers, int(t.index))
	}
	opened, err := image.OpenTraced(traced, p.files)
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

// momentOf returns where a thread is.
func (p *process) momentOf(t *thread) (evidence.Moment, error) {
	if t.index == 0 {
		if err := p.identify(t); err != nil {
			return evidence.Moment{}, nil // before its first event
		}
	}
	r, err := p.rthread(t.index)
	if err != nil {
		return evidence.Moment{}, err
	}
	regs, err := p.programRegisters(t)
	if err != nil {
		return evidence.Moment{}, err
	}
	return evidence.Moment{Thread: t.index, Ordinal: r.Ordinal, PC: evidence.Addr(regs.Rip), Count: 1}, nil
}

// programRegisters returns the registers with which the program continues in a stopped thread.
func (p *process) programRegisters(t *thread) (ptrace.Registers, error) {
	regs, _, err := p.registersAndFrame(t)
	return regs, err
}

// namedRegisters is programRegisters, but if the pc is in a stub, which no unwind table covers,
// the pc is that in the program's own text.
func (p *process) namedRegisters(t *thread) (ptrace.Registers, error) {
	regs, frame, err := p.registersAndFrame(t)
	if frame != nil && (frame.Kind == agent.EntrySyscall || frame.Kind == agent.EntryInsn) {
		regs.Rip = frame.R11
	}
	return regs, err
}

func (p *process) registersAndFrame(t *thread) (ptrace.Registers, *agent.RawFrame, error) {
	if t.final != nil {
		regs := t.final.regs
		p.toProgram(&regs)
		return p.underEngine(t.index, regs, t.final.inside)
	}
	regs, err := ptrace.GetRegisters(t.tid)
	p.toProgram(&regs)
	if err != nil || t.index == 0 {
		return regs, nil, err
	}
	r, err := p.rthread(t.index)
	if err != nil {
		return regs, nil, err
	}
	return p.underEngine(t.index, regs, r.Inside)
}

// underEngine returns, for a thread in the engine, the registers that the engine has saved.
func (p *process) underEngine(index uint32, regs ptrace.Registers, inside uint64) (ptrace.Registers, *agent.RawFrame, error) {
	if inside == 0 {
		return regs, nil, nil
	}
	f, err := readStruct[agent.RawFrame](p.memory, inside)
	if err != nil {
		return regs, nil, fmt.Errorf("replay: frame of thread %d: %w", index, err)
	}
	return underFrame(regs, f), f, nil
}

// underFrame returns the registers with those that a frame of the engine has saved in place of the
// current ones.
func underFrame(regs ptrace.Registers, f *agent.RawFrame) ptrace.Registers {
	regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx, regs.Rsi, regs.Rdi, regs.Rbp = f.RAX, f.RBX, f.RCX, f.RDX, f.RSI, f.RDI, f.RBP
	regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15 = f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15
	regs.Rip, regs.Rsp, regs.Eflags = f.RIP, f.RSP, f.RFlags
	regs.Orig_rax = ^uint64(0)
	return regs
}

// generalOf returns the general registers by DWARF number.
func generalOf(regs *ptrace.Registers) [16]uint64 {
	return [16]uint64{regs.Rax, regs.Rdx, regs.Rcx, regs.Rbx, regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
}

func imageRegisters(regs *ptrace.Registers) *image.Registers {
	var r image.Registers
	for reg, value := range generalOf(regs) {
		r.Set(image.Register(reg), value)
	}
	r.Set(image.RIP, regs.Rip)
	r.FSBase, r.GSBase, r.OrigRAX = evidence.Addr(regs.Fs_base), evidence.Addr(regs.Gs_base), -1
	return &r
}

// operandAddress does the same from the registers before the instruction.
func operandAddress(o *x86.Operand, regs *ptrace.Registers) (uint64, bool) {
	values := generalOf(regs)
	addr, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) {
		if !r.General() {
			return 0, false
		}
		return values[r], true
	})
	return addr + segmentBase(o, regs), known
}

func segmentBase(o *x86.Operand, regs *ptrace.Registers) uint64 {
	switch o.Memory.Segment {
	case x86.SegFS:
		return regs.Fs_base
	case x86.SegGS:
		return regs.Gs_base
	}
	return 0
}
