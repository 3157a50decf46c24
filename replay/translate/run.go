package translate

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/image/x86"
	"diagnose/internal/siginfo"
	"diagnose/internal/signalsets"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Step is an instruction that was executed.
type Step struct {
	Inst *x86.Inst
	// General are the general registers before it, by x86.Reg.
	General [16]uint64
	// Holds says, of a conditional move, whether its condition was true.
	Holds bool
}

// Request says what Run executes.
type Request struct {
	// Most bounds the instructions that are reported. Skip is how many of the first of these count, but are not passed to Each: that is
	// many times as fast.
	Most, Skip uint64
	// Each is called for each instruction but the first, at which the thread is.
	Each func(*Step)
}

// Ran is what Run did.
type Ran struct {
	// Executed is the number of instructions; 0: the thread's is not translated.
	Executed uint64
	// Last is the address of the last of them.
	Last uint64
}

// run is one call of Run.
type run struct {
	*Translator
	t    *tracee.Thread
	regs *ptrace.Registers
	Request
	log decoder
	// stopped: a SIGSTOP arrived; interrupted: the thread was to stop. Both are for after the run.
	stopped, interrupted bool
}

// Run executes a stopped thread from the program's address at which it is, up to the first instruction that is not
// translated, or until so many were reported that the caller has enough. regs are its registers; they become those at the
// end.
func (x *Translator) Run(t *tracee.Thread, regs *ptrace.Registers, q Request) (ran Ran, err error) {
	if x.process.PID != x.pid || x.process.Protection != nil || !x.process.Started {
		return ran, nil
	}
	if err := x.stopAt(x.process.BreakpointsOf(t.TID)); err != nil {
		return ran, err
	}
	if fails, err := x.canFail(t.TID); err != nil || !fails {
		return ran, err
	}
	b, err := x.copyFor(t, regs)
	if err != nil || b == nil {
		return ran, err
	}
	r := &run{Translator: x, t: t, regs: regs, Request: q}
	r.log = decoder{state: tracee.GeneralRegisters(regs), each: q.Each, most: q.Most, skip: q.Skip, first: true}
	for b != nil {
		at, executed := regs.Rip, r.log.executed
		if err := r.resume(b); err != nil {
			return ran, err
		}
		if r.log.reported >= q.Most || r.stopped || r.interrupted {
			break
		}
		if regs.Rip == at && r.log.executed == executed {
			break // the first instruction fails, which it has to do at its own address
		}
		if b, err = x.copyFor(t, regs); err != nil {
			return ran, err
		}
	}
	if err := ptrace.SetRegisters(t.TID, regs); err != nil {
		return ran, err
	}
	if r.stopped {
		err = unix.Tgkill(x.pid, t.TID, unix.SIGSTOP)
	}
	if r.interrupted {
		err = errors.Join(err, ptrace.Interrupt(t.TID))
	}
	if ran.Executed = r.log.executed; ran.Executed > 0 {
		ran.Last = r.log.step.Inst.PC
	}
	return ran, err
}

// copyFor returns the copy of the code at the thread's pc; nil: it is not translated.
func (x *Translator) copyFor(t *tracee.Thread, regs *ptrace.Registers) (*block, error) {
	if b, known := x.byPC[regs.Rip]; known {
		return b, nil
	}
	if x.data == 0 {
		if x.decode(regs.Rip) == nil {
			return nil, nil
		}
		if err := x.mapData(t); err != nil {
			return nil, err
		}
	}
	b, err := x.copyOf(t, regs.Rip)
	if !errors.Is(err, errFull) {
		return b, err
	}
	if err := x.flush(); err != nil {
		return nil, err
	}
	return x.copyOf(t, regs.Rip)
}

// resume lets the thread execute copies until it stops, reports what it executed, and gives it the program's registers.
func (r *run) resume(b *block) error {
	if err := r.process.Memory.SetWord(r.data+wordLog, r.Translator.log.Start); err != nil {
		return err
	}
	at := *r.regs
	at.Rip, at.Orig_rax = b.start, ^uint64(0)
	if err := ptrace.SetRegisters(r.t.TID, &at); err != nil {
		return err
	}
	for {
		if err := ptrace.Cont(r.t.TID, 0); err != nil {
			return err
		}
		stop, err := ptrace.WaitFor(r.t.TID)
		if err != nil {
			return err
		}
		if done, err := r.stop(&stop); done || err != nil {
			return err
		}
	}
}

// stop handles a stop of the thread. done: it is where the copies end, or an instruction in them failed.
func (r *run) stop(stop *ptrace.Stop) (done bool, err error) {
	switch stop.Kind {
	case ptrace.SignalStop:
	case ptrace.Interrupted, ptrace.GroupStop:
		r.interrupted = true
		return false, nil
	default:
		return false, r.process.Gone(stop)
	}
	info, err := ptrace.GetSiginfo(r.t.TID)
	if err != nil {
		return false, err
	}
	if info.Code() <= 0 || !tracee.IsFault(stop.Signal) {
		// No signal that was sent may reach the program: the engine raises those of the log.
		r.stopped = r.stopped || stop.Signal == unix.SIGSTOP
		return false, nil
	}
	if *r.regs, err = ptrace.GetRegisters(r.t.TID); err != nil {
		return false, err
	}
	pc := r.regs.Rip
	target, exit := r.exits[pc]
	switch {
	case stop.Signal == unix.SIGTRAP && info.Code() == siginfo.Kernel && exit:
		return true, r.arrive(target)
	case stop.Signal == unix.SIGTRAP && info.Code() == siginfo.Kernel && r.misses[pc]:
		return true, r.missed(pc)
	case r.inCopies(pc) && stop.Signal != unix.SIGTRAP:
		return true, r.failed(pc, stop.Signal)
	}
	return false, fmt.Errorf("replay: thread %d came to %v at %#x in translated code", r.t.Index, stop, pc)
}

// arrive ends at a program address to which the copies led.
func (r *run) arrive(pc uint64) error {
	if err := r.take(nil, 0); err != nil {
		return err
	}
	return r.settle(pc)
}

// missed ends at the target of an indirect jump. The processor does not jump to an address that is not canonical: the
// instruction fails, and is executed again.
func (r *run) missed(pc uint64) error {
	target, err := r.word(wordTarget)
	if err != nil {
		return err
	}
	if int64(target)<<16>>16 == int64(target) {
		return r.arrive(target)
	}
	b := r.blockAt(pc - 1)
	end, err := r.word(wordLog)
	if err != nil {
		return err
	}
	if err := r.process.Memory.SetWord(r.data+wordLog, end-uint64(b.size)); err != nil {
		return err
	}
	last := len(b.code) - 1
	switch inst := b.code[last].inst; inst.Flow {
	case x86.FlowCall:
		r.regs.Rsp += wordSize
	case x86.FlowReturn:
		r.regs.Rsp -= dropped(inst)
	}
	if err := r.take(b, last); err != nil {
		return err
	}
	return r.settle(b.code[last].inst.PC)
}

// failed ends at an instruction that failed in its copy, or where the log is full. It is executed again, at its own address.
func (r *run) failed(pc uint64, signal syscall.Signal) error {
	b := r.blockAt(pc)
	if b == nil {
		return fmt.Errorf("replay: %v at %#x, in no copy", signal, pc)
	}
	free, err := r.word(wordFree)
	if err != nil {
		return err
	}
	setRegister(r.regs, b.reg, free)
	n := 0
	for n < len(b.code) && b.code[n].to <= pc {
		n++
	}
	if err := r.take(b, n); err != nil {
		return err
	}
	if n == len(b.code) {
		return r.settle(b.next)
	}
	return r.settle(b.code[n].inst.PC)
}

// settle makes the registers those of the program at a pc.
func (r *run) settle(pc uint64) error {
	r.regs.Rip, r.regs.Orig_rax = pc, ^uint64(0)
	r.regs.Eflags &^= ptrace.FlagResume // the processor sets it at faults
	if have := tracee.GeneralRegisters(r.regs); have != r.log.state {
		return fmt.Errorf("replay: the log of translated code leads to other registers at %#x: %x, not %x", pc, r.log.state, have)
	}
	return nil
}

// take reads the log and reports its instructions, and the first n instructions of a block whose record is not complete.
func (r *run) take(b *block, n int) error {
	end, err := r.word(wordLog)
	if err != nil {
		return err
	}
	if end < r.Translator.log.Start || end > r.Translator.log.End {
		return fmt.Errorf("replay: the translator's log ends at %#x", end)
	}
	complete := end - r.Translator.log.Start
	size := complete
	if b != nil {
		size = min(size+uint64(b.size), logSize)
	}
	data := r.buffer[:size]
	if size > 0 {
		if _, err := r.process.Memory.Memory.ReadAt(data, int64(r.Translator.log.Start)); err != nil {
			return err
		}
	}
	if err := r.log.all(r.blocks, data[:complete]); err != nil {
		return err
	}
	if b == nil {
		return nil
	}
	r.log.partly(b, n, data[complete:], tracee.GeneralRegisters(r.regs))
	return nil
}

// canFail reports whether the thread neither blocks nor ignores SIGSEGV, by which it stops where the log is full: the kernel
// would change that (force_sig_info_to_task in kernel/signal.c).
func (x *Translator) canFail(tid int) (bool, error) {
	if fails, known := x.fails[tid]; known {
		return fails, nil
	}
	sets, err := signalsets.Read(tid)
	if err != nil {
		return false, fmt.Errorf("replay: the signals of thread %d: %w", tid, err)
	}
	x.fails[tid] = !(sets.Blocked | sets.Ignored).Has(unix.SIGSEGV)
	return x.fails[tid], nil
}

// setRegister sets a general register.
func setRegister(regs *ptrace.Registers, r x86.Reg, value uint64) {
	*[...]*uint64{&regs.Rax, &regs.Rdx, &regs.Rcx, &regs.Rbx, &regs.Rsi, &regs.Rdi, &regs.Rbp, &regs.Rsp,
		&regs.R8, &regs.R9, &regs.R10, &regs.R11, &regs.R12, &regs.R13, &regs.R14, &regs.R15}[r] = value
}
