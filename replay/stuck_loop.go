package replay

import (
	"bytes"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// question is what the watchdog wants to know of a thread that computes: whether it
// turns in a loop that it cannot leave.
type question struct {
	after time.Duration // since the last event
	steps int           // instructions to look at, at most
}

// mostLoopBytes bounds what a loop may write that is looked at.
const mostLoopBytes = 64 << 10

// looked answers the watchdog's question of a thread that it stopped: the replay ends
// there, or goes on as if it had not been asked.
//
// A thread that comes back to an instruction with the same registers, while memory is
// the same, does so for good: the replay is deterministic, and no other thread runs.
// So one turn says it, where only time says that a loop counts.
func (c *controller) looked(t *thread, q *question) error {
	if may, err := c.mayLook(t); err != nil {
		return err
	} else if !may {
		c.watch.question.Store(nil)
		return c.cont(t, 0)
	}
	c.result.looks++
	l := &loopLook{c: c, t: t, code: newCodeReader(c), instructions: map[uint64]*x86.Inst{}}
	defer l.code.close()
	endless, other, err := l.turns(q.steps)
	c.watch.question.Store(nil)
	switch {
	case err != nil:
		return err
	case other != nil:
		return c.handle(*other)
	case !endless:
		return c.cont(t, 0)
	}
	if err := c.stuck(t, true); err != nil {
		return err
	}
	e := c.end.failure.(*StuckError)
	e.After, e.Endless = q.after, true
	return nil
}

// mayLook reports whether a thread is the one that runs, outside of the engine, and
// can be stepped without a loss: with watches of debug registers, a step and an access
// are told by one stop.
func (c *controller) mayLook(t *thread) (bool, error) {
	if c.control == 0 || c.free() || t.final != nil || t.stepping() || c.tracing != nil && c.tracing.kernel == nil {
		return false, nil
	}
	if c.identify(t) != nil {
		return false, nil
	}
	r, err := c.rthread(t.index)
	if err != nil || r.Inside != 0 {
		return false, err
	}
	control, err := c.readControl()
	return err == nil && control.Holder == t.index, err
}

// loopLook steps a thread and compares it with how it was.
type loopLook struct {
	c            *controller
	t            *thread
	code         *codeReader
	instructions map[uint64]*x86.Inst
	// registers and vectors are of the state that later ones are compared with, memory
	// the bytes then of what was written since, read what was read since.
	registers ptrace.Registers
	vectors   []byte
	memory    map[uint64]byte
	read      map[uint64]bool
}

// turns steps so many instructions at most. endless: the thread is back where it was.
// other is a stop that is for something else, and not dealt with. The state that is
// compared with is taken anew at powers of two (Brent, An improved Monte Carlo
// factorization algorithm, BIT 1980), so that one before the loop does no harm.
func (l *loopLook) turns(most int) (endless bool, other *ptrace.Stop, err error) {
	next := 1
	for n := range most {
		regs, err := ptrace.GetRegisters(l.t.tid)
		if err != nil {
			return false, nil, err
		}
		regs.Orig_rax = ^uint64(0) // which says how it was stopped
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

func (l *loopLook) remember(regs *ptrace.Registers) (err error) {
	l.registers, l.memory, l.read = *regs, map[uint64]byte{}, map[uint64]bool{}
	l.vectors, err = ptrace.GetRegset(l.t.tid, ptrace.RegsetXState)
	return err
}

// same reports whether what the registers do not have is as it was, and nobody else
// can change it.
func (l *loopLook) same() (bool, error) {
	vectors, err := ptrace.GetRegset(l.t.tid, ptrace.RegsetXState)
	if err != nil || !bytes.Equal(vectors, l.vectors) {
		return false, err
	}
	for addr, was := range l.memory {
		var now [1]byte
		if _, err := l.c.memory.ReadAt(now[:], int64(addr)); err != nil || now[0] != was {
			return false, err
		}
	}
	maps, err := readMaps(l.c.pid)
	if err != nil {
		return false, err
	}
	for addr := range l.read {
		if m := maps.at(addr); m == nil || m.perms[3] == 's' || m.path == "[vvar]" || m.path == "[vvar_vclock]" {
			return false, nil // the kernel or another process may
		}
	}
	return threadsSleep(l.c.pid, l.t.tid), nil
}

// notItself are instructions whose results are not those of registers and memory
// alone, or that tell that the thread is stepped.
var notItself = []string{"cpuid", "rdtsc", "rdtscp", "rdpmc", "rdpid", "rdrand", "rdseed", "in", "xbegin", "xend", "xabort", "xtest",
	"xgetbv", "pushf", "pushfq", "popf", "popfq", "umwait", "tpause", "umonitor", "str", "smsw", "lsl", "verr", "verw", "lar"}

// observe notes what the next instruction accesses. False: what it does cannot be told.
func (l *loopLook) observe(regs *ptrace.Registers) (bool, error) {
	inst, err := l.instruction(regs.Rip)
	if inst == nil || err != nil {
		return false, err
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		addr, known := operandAddress(o, regs)
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
		if _, err := l.c.memory.ReadAt(before, int64(addr)); err != nil {
			return false, nil // it is about to fail
		}
		for j, b := range before {
			if _, written := l.memory[addr+uint64(j)]; !written {
				l.memory[addr+uint64(j)] = b
			}
		}
	}
	return true, nil
}

// instruction is the one at a pc; nil: it must not be stepped, or is not known.
func (l *loopLook) instruction(pc uint64) (*x86.Inst, error) {
	inst, known := l.instructions[pc]
	if known {
		return inst, nil
	}
	inside, err := l.c.inLibrary(pc)
	if err != nil {
		return nil, err
	}
	if !inside {
		inst = l.code.decode(pc)
	}
	if inst != nil && (inst.Flow == x86.FlowSyscall || inst.Flow == x86.FlowTrap || slices.Contains(notItself, inst.Op)) {
		inst = nil
	}
	l.instructions[pc] = inst
	return inst, nil
}

// step executes an instruction. other: something else than that came of it.
func (l *loopLook) step() (other *ptrace.Stop, err error) {
	stop, err := ptrace.StepQuietly(l.t.tid)
	if err != nil {
		return nil, err
	}
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return &stop, nil
	}
	info, err := ptrace.GetSiginfo(l.t.tid)
	if err != nil {
		return nil, err
	}
	if siCode(&info) != trapTrace {
		return &stop, nil
	}
	return nil, nil
}
