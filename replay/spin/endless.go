// Package spin examines a stopped thread that computes for long: whether it is in a loop that it
// cannot leave, and which memory it reads there.
package spin

import (
	"bytes"
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// mostLoopBytes bounds the memory that an examined loop may write.
const mostLoopBytes = 64 << 10

// Endless steps a stopped thread by at most the given number of instructions. endless: the thread
// has returned to an earlier state, and no other thread runs, so it loops for ever. other is a stop
// of the thread for another reason, which has not been handled.
//
// A thread that returns to an instruction with the same registers and the same memory will do so
// for ever: a replay is deterministic. So one iteration proves it. Of a loop that counts, only time
// can tell.
func Endless(p *tracee.Process, t *tracee.Thread, most int) (endless bool, other *ptrace.Stop, err error) {
	l := &loop{p: p, t: t, instructions: map[uint64]*x86.Inst{}}
	return l.turns(most)
}

// loop steps a thread and compares its states.
type loop struct {
	p            *tracee.Process
	t            *tracee.Thread
	instructions map[uint64]*x86.Inst
	// registers and vectors are those of the state that later ones are compared with. memory has
	// the bytes then of the memory written since, read the addresses read since.
	registers ptrace.Registers
	vectors   []byte
	memory    map[uint64]byte
	read      map[uint64]bool
}

// turns does the work of Endless. The state to compare with is saved again at powers of two (Brent,
// An improved Monte Carlo factorization algorithm, BIT 1980), so that it does no harm if the first
// one was before the loop.
func (l *loop) turns(most int) (endless bool, other *ptrace.Stop, err error) {
	next := 1
	for n := range most {
		regs, err := ptrace.GetRegisters(l.t.TID)
		if err != nil {
			return false, nil, err
		}
		regs.Orig_rax = ^uint64(0) // it says how the thread was stopped
		if n > 0 && regs == l.registers {
			if same, err := l.same(); same || err != nil {
				return same, nil, err
			}
		}
		if n+1 == next {
			next *= 2
			if err := l.remember(&regs); err != nil {
				return false, nil, err
			}
		}
		if known, err := l.observe(&regs); !known || err != nil {
			return false, nil, err
		}
		if other, err = l.step(); other != nil || err != nil {
			return false, other, err
		}
	}
	return false, nil, nil
}

func (l *loop) remember(regs *ptrace.Registers) (err error) {
	l.registers, l.memory, l.read = *regs, map[uint64]byte{}, map[uint64]bool{}
	l.vectors, err = ptrace.GetRegset(l.t.TID, ptrace.RegsetXState)
	return err
}

// same reports whether the state outside of the registers is unchanged, and no other thread or
// process can change it.
func (l *loop) same() (bool, error) {
	vectors, err := ptrace.GetRegset(l.t.TID, ptrace.RegsetXState)
	if err != nil || !bytes.Equal(vectors, l.vectors) {
		return false, err
	}
	for addr, was := range l.memory {
		var now [1]byte
		if _, err := l.p.Memory.ReadAt(now[:], int64(addr)); err != nil || now[0] != was {
			return false, err
		}
	}
	maps, err := tracee.ReadMaps(l.p.PID)
	if err != nil {
		return false, err
	}
	for addr := range l.read {
		if m := maps.Containing(addr); m == nil || m.Perms[3] == 's' || m.Path == "[vvar]" || m.Path == "[vvar_vclock]" {
			return false, nil // the kernel or another process may change it
		}
	}
	return tracee.Sleeps(l.p.PID, l.t.TID), nil
}

// notItself are instructions whose results do not follow from registers and memory alone, or which
// reveal that the thread is stepped.
var notItself = []string{"cpuid", "rdtsc", "rdtscp", "rdpmc", "rdpid", "rdrand", "rdseed", "in", "xbegin", "xend", "xabort", "xtest",
	"xgetbv", "pushf", "pushfq", "popf", "popfq", "umwait", "tpause", "umonitor", "str", "smsw", "lsl", "verr", "verw", "lar"}

// observe notes the accesses of the next instruction. It returns false if its effect is not known.
func (l *loop) observe(regs *ptrace.Registers) (bool, error) {
	inst, err := l.instruction(regs.Rip)
	if inst == nil || err != nil {
		return false, err
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		addr, known := tracee.OperandAddress(o, regs)
		if !known || o.Size == 0 || len(l.memory) > mostLoopBytes {
			return false, nil
		}
		if o.Access != evidence.Write {
			l.read[addr] = true
		}
		if o.Access == evidence.Read {
			continue
		}
		before := make([]byte, o.Size)
		if _, err := l.p.Memory.ReadAt(before, int64(addr)); err != nil {
			return false, nil // the access is about to fail
		}
		for j, b := range before {
			if _, written := l.memory[addr+uint64(j)]; !written {
				l.memory[addr+uint64(j)] = b
			}
		}
	}
	return true, nil
}

// instruction returns the instruction at a pc; nil if it must not be stepped, or is not known.
func (l *loop) instruction(pc uint64) (*x86.Inst, error) {
	inst, known := l.instructions[pc]
	if known {
		return inst, nil
	}
	inside, err := l.p.InLibrary(pc)
	if err != nil {
		return nil, err
	}
	if !inside {
		inst = l.p.Instruction(pc)
	}
	if inst != nil && (inst.Flow == x86.FlowSyscall || inst.Flow == x86.FlowTrap || slices.Contains(notItself, inst.Op)) {
		inst = nil
	}
	l.instructions[pc] = inst
	return inst, nil
}

// step executes an instruction. other is a stop for another reason.
func (l *loop) step() (other *ptrace.Stop, err error) {
	stop, err := l.p.Traps.StepUnlessStopped(l.t.TID)
	if err != nil {
		return nil, err
	}
	if own, err := tracee.EndsStep(&stop); err != nil || own {
		return nil, err
	}
	return &stop, nil
}
