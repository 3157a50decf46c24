package checkpoint

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// thread is a thread of the process at the time of the copy.
type thread struct {
	tracee   tracee.Thread
	regs     ptrace.Registers
	extended []byte // its XSAVE area
	mask     uint64
	// clears is the word that the kernel clears when the thread ends, 0 if there is none.
	clears uint64
	// robust is the address of its list of robust mutexes, robustLength that of the list's head.
	robust, robustLength uint64
	name                 string
	// known: the engine knows the thread by the kernel's id. traps: reading the time-stamp counter traps.
	known, traps bool
}

// The results of a system call that the kernel repeats (linux/errno.h).
const (
	restartLow   = -514 // ERESTARTNOHAND
	restartHigh  = -512 // ERESTARTSYS
	restartBlock = -516 // ERESTART_RESTARTBLOCK
)

// repeated returns the registers with which a thread in a system call repeats it from its beginning. A wait with a time limit begins
// again: the engine has only waits that it repeats.
func repeated(regs ptrace.Registers) ptrace.Registers {
	const length = 2 // of the instruction syscall
	result := int64(regs.Rax)
	if int64(regs.Orig_rax) >= 0 && (result >= restartLow && result <= restartHigh || result == restartBlock) {
		regs.Rip -= length
		regs.Rax = regs.Orig_rax
	}
	regs.Orig_rax = ^uint64(0)
	return regs
}

// captureThread reads the state of a stopped thread, which is as before when it returns.
func captureThread(p *tracee.Process, t *tracee.Thread) (x thread, err error) {
	x.tracee = tracee.Thread{TID: t.TID, Index: t.Index, Stopped: true, Final: t.Final, Raise: t.Raise}
	if d := t.Deferred; d != nil && d.Kind == ptrace.Interrupted {
		x.tracee.Deferred = &ptrace.Stop{Kind: ptrace.Interrupted}
	}
	if x.regs, err = ptrace.GetRegisters(t.TID); err != nil {
		return x, err
	}
	if x.extended, err = ptrace.GetRegset(t.TID, ptrace.RegsetXState); err != nil {
		return x, err
	}
	if x.mask, err = ptrace.GetSigmask(t.TID); err != nil {
		return x, err
	}
	if x.robust, x.robustLength, err = ptrace.RobustList(t.TID); err != nil {
		return x, err
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", p.PID, t.TID))
	if err != nil {
		return x, fmt.Errorf("checkpoint: %w", err)
	}
	x.name = strings.TrimSuffix(string(name), "\n")
	if t.Index != 0 {
		r, err := p.ReadThread(t.Index)
		if err != nil {
			return x, err
		}
		x.known, x.traps = int(r.RealTID) == t.TID, r.CounterTraps != 0
	}
	caller, err := ptrace.NewCaller(t.TID, page)
	if err != nil {
		return x, err
	}
	if _, err := caller.Call(unix.SYS_PRCTL, unix.PR_GET_TID_ADDRESS, page+scratchAt); err != nil {
		return x, err
	}
	if x.clears, err = p.Memory.Word(page + scratchAt); err != nil {
		return x, err
	}
	saved := x.regs
	p.OutOfCopies(&x.regs)
	x.regs = repeated(x.regs)
	return x, ptrace.SetRegisters(t.TID, &saved)
}

// restore gives a thread that has executed nothing the state of x.
// named is the name that it has, empty if that is not known; clears: the kernel knows which word to clear.
func (x *thread) restore(m *ptrace.Memory, tid int, named string, clears bool) error {
	caller, err := ptrace.NewCaller(tid, page)
	if err != nil {
		return err
	}
	if !clears {
		if _, err := caller.Call(unix.SYS_SET_TID_ADDRESS, x.clears); err != nil {
			return err
		}
	}
	if x.robust != 0 {
		if _, err := caller.Call(unix.SYS_SET_ROBUST_LIST, x.robust, x.robustLength); err != nil {
			return err
		}
	}
	if x.traps {
		const trap = 2 // PR_TSC_SIGSEGV
		if _, err := caller.Call(unix.SYS_PRCTL, unix.PR_SET_TSC, trap); err != nil {
			return err
		}
	}
	if named == "" || x.name != named {
		if err := x.restoreName(caller, m); err != nil {
			return err
		}
	}
	if err := x.restoreEngine(caller, m, tid); err != nil {
		return err
	}
	if err := ptrace.SetRegset(tid, ptrace.RegsetXState, x.extended); err != nil {
		return err
	}
	if err := ptrace.SetSigmask(tid, x.mask); err != nil {
		return err
	}
	return ptrace.SetRegisters(tid, &x.regs)
}

func (x *thread) restoreName(caller *ptrace.Caller, m *ptrace.Memory) error {
	if _, err := m.WriteAt(append([]byte(x.name), 0), page+scratchAt); err != nil {
		return err
	}
	_, err := caller.Call(unix.SYS_PRCTL, unix.PR_SET_NAME, page+scratchAt)
	return err
}

// restoreEngine tells the engine the thread's id, and the kernel the engine's stack for signals (engine/signal_calls.c).
func (x *thread) restoreEngine(caller *ptrace.Caller, m *ptrace.Memory, tid int) error {
	if !x.known {
		return nil // it begins, and does that itself
	}
	at := agent.RThreadAddress(x.tracee.Index)
	idAt := at + uint64(unsafe.Offsetof(agent.RawRThread{}.RealTID))
	if _, err := m.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(tid)), int64(idAt)); err != nil {
		return err
	}
	stack := binary.LittleEndian.AppendUint64(nil, at+agent.SignalStackAt)
	stack = binary.LittleEndian.AppendUint64(stack, 0)
	stack = binary.LittleEndian.AppendUint64(stack, agent.SignalStack)
	if _, err := m.WriteAt(stack, page+scratchAt); err != nil {
		return err
	}
	_, err := caller.Call(unix.SYS_SIGALTSTACK, page+scratchAt, 0)
	return err
}
