package replay

import (
	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// coreThread is a thread of a core.
type coreThread struct {
	*image.Thread
	index  uint32
	raw    *agent.RawRThread
	frame  *agent.RawFrame // nil: it was not in the engine
	failed bool
}

// coreThreads finds the engine's threads in a core by their kernel ids, which the engine has
// stored.
func coreThreads(core *image.Process) map[uint32]*coreThread {
	found := map[uint32]*coreThread{}
	control, err := image.Struct[agent.RawControl](core, agent.EngineControl)
	if err != nil {
		return found
	}
	byID := map[int]*image.Thread{}
	for i := range core.Threads {
		byID[core.Threads[i].Ref.TID] = &core.Threads[i]
	}
	for i := uint32(1); i <= min(control.Threads, agent.RThreads-1); i++ {
		raw, err := image.Struct[agent.RawRThread](core, evidence.Addr(agent.RThreadAddress(i)))
		if err != nil || raw.State == agent.RNone || raw.State == agent.REnded {
			continue
		}
		t := &coreThread{Thread: byID[int(raw.RealTID)], index: i, raw: raw}
		if raw.State == agent.RStarting && raw.RealTID == 0 {
			t.Thread = threadAt(core, raw.ThreadPointer)
		}
		if t.Thread == nil {
			continue
		}
		if raw.Inside != 0 {
			t.frame, _ = image.Struct[agent.RawFrame](core, evidence.Addr(raw.Inside))
		}
		t.failed = core.Failing >= 0 && &core.Threads[core.Failing] == t.Thread
		found[i] = t
	}
	return found
}

// threadAt finds a core's thread by its thread pointer, which its creator knows before the thread
// has reported its id.
func threadAt(core *image.Process, pointer uint64) *image.Thread {
	for i := range core.Threads {
		if t := &core.Threads[i]; pointer != 0 && uint64(t.Registers.FSBase) == pointer {
			return t
		}
	}
	return nil
}

// preempted reports whether the thread was preempted at a point of its code and never continued,
// because the process ended before. No event records that.
func (t *coreThread) preempted() bool { return t.frame != nil && t.frame.Kind == agent.EntryPoint }

// program returns the registers with which the program would have continued.
func (t *coreThread) program() ptrace.Registers {
	var regs ptrace.Registers
	get := func(n image.Register) uint64 { x, _ := t.Registers.Get(n); return x }
	regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx = get(image.RAX), get(image.RBX), get(image.RCX), get(image.RDX)
	regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp = get(image.RSI), get(image.RDI), get(image.RBP), get(image.RSP)
	regs.R8, regs.R9, regs.R10, regs.R11 = get(image.R8), get(image.R9), get(image.R10), get(image.R11)
	regs.R12, regs.R13, regs.R14, regs.R15 = get(image.R12), get(image.R13), get(image.R14), get(image.R15)
	regs.Rip, regs.Eflags = get(image.RIP), t.Registers.Flags
	regs.Fs_base, regs.Gs_base = uint64(t.Registers.FSBase), uint64(t.Registers.GSBase)
	if t.frame != nil {
		regs = tracee.UnderFrame(regs, t.frame)
	}
	return regs
}

// clones reports whether a thread of the core is in the stub of a clone, where a replay does not
// stop.
func (t *coreThread) clones() bool { return t.raw.Inside == 0 && t.raw.Cloning != 0 }
