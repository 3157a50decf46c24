package recorded

import (
	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Thread is a thread of a core.
type Thread struct {
	*image.Thread
	Index  uint32
	Raw    *agent.RawRThread
	Frame  *agent.RawFrame // nil: it was not in the engine
	Failed bool
}

// Threads finds the engine's threads in a core by their kernel ids, which the engine has
// stored.
func Threads(core *image.Process) map[uint32]*Thread {
	found := map[uint32]*Thread{}
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
		t := &Thread{Thread: byID[int(raw.RealTID)], Index: i, Raw: raw}
		if raw.State == agent.RStarting && raw.RealTID == 0 {
			t.Thread = threadAt(core, raw.ThreadPointer)
		}
		if t.Thread == nil {
			continue
		}
		if raw.Inside != 0 {
			t.Frame, _ = image.Struct[agent.RawFrame](core, evidence.Addr(raw.Inside))
		}
		t.Failed = core.Failing >= 0 && &core.Threads[core.Failing] == t.Thread
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

// Preempted reports whether the thread was preempted at a point of its code and never continued,
// because the process ended before. No event records that.
func (t *Thread) Preempted() bool { return t.Frame != nil && t.Frame.Kind == agent.EntryPoint }

// Program returns the registers with which the program would have continued.
func (t *Thread) Program() ptrace.Registers {
	var regs ptrace.Registers
	get := func(n image.Register) uint64 { x, _ := t.Registers.Get(n); return x }
	regs.Rax, regs.Rbx, regs.Rcx, regs.Rdx = get(image.RAX), get(image.RBX), get(image.RCX), get(image.RDX)
	regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp = get(image.RSI), get(image.RDI), get(image.RBP), get(image.RSP)
	regs.R8, regs.R9, regs.R10, regs.R11 = get(image.R8), get(image.R9), get(image.R10), get(image.R11)
	regs.R12, regs.R13, regs.R14, regs.R15 = get(image.R12), get(image.R13), get(image.R14), get(image.R15)
	regs.Rip, regs.Eflags = get(image.RIP), t.Registers.Flags
	regs.Fs_base, regs.Gs_base = uint64(t.Registers.FSBase), uint64(t.Registers.GSBase)
	if t.Frame != nil {
		regs = tracee.UnderFrame(regs, t.Frame)
	}
	return regs
}

// Clones reports whether a thread of the core is in the stub of a clone, where a replay does not
// stop.
func (t *Thread) Clones() bool { return t.Raw.Inside == 0 && t.Raw.Cloning != 0 }
