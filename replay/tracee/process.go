package tracee

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"

	"diagnose/replay/ptrace"
)

// Process is the replayed process under ptrace: its memory, its threads, and the engine's data in
// it. Only its memory may be used outside of the tracing kernel thread.
type Process struct {
	PID     int
	Memory  *Memory
	Threads map[int]*Thread
	// Control is the address of the engine's control; 0 before DG_TRAP_HELLO. TrapPC is the
	// address of the engine's trap instruction.
	Control uint64
	TrapPC  uint64
	// Started: the engine runs in this process, or ran in its parent.
	Started bool
	// Mapped is the memory that the tool maps in the process for its own code and data.
	Mapped []Span
	// Shared is the part of it that the tool has mapped, too, and that no copy of the process uses.
	Shared []Span
	// Library is the recording library's code, once it has been looked up. LibraryPath is the
	// library's file.
	Library     []Span
	LibraryPath string
	entries     Span // see Entries
	// WatchRegisters are the debug registers that watches use in each thread.
	WatchRegisters WatchRegisters
	// breakpoints are the last ones set, by the kernel's number of the thread.
	breakpoints map[int][]uint64
	// Traps are the breakpoints where debug registers do not stop threads; nil: they do.
	Traps *Traps
	// Protection takes pages away from the process's threads; nil: none does.
	Protection Protection
	// queued are stops that were waited for while another thread was handled.
	queued []ptrace.Stop
	// Copies counts the copies that package checkpoint has made of the process for calls.
	Copies uint64
	// Detached: the process was handed over.
	Detached bool
	// allowed are the processors that the process could use before pin; nil: it was not pinned.
	allowed *unix.CPUSet
	// ImageOptions says how the process's files are found.
	ImageOptions image.Options
	// OutOfCopies replaces registers in code that the tool has placed in the process by those in
	// the program's text.
	OutOfCopies func(*ptrace.Registers)
	// MovedFrom returns the program's instruction that the tool has placed right before pc; nil:
	// none.
	MovedFrom func(pc uint64) *x86.Inst
}

// UseTraps makes the process's breakpoints int3 instructions in place of debug registers.
func (p *Process) UseTraps() { p.Traps = newTraps(p, p.Memory) }

// SetBreakpoints replaces the breakpoints of a stopped thread: it stops before it executes the
// instructions at the pcs. The process's watches that use debug registers stay as they are.
func (p *Process) SetBreakpoints(tid int, pcs ...uint64) error {
	if p.breakpoints == nil {
		p.breakpoints = map[int][]uint64{}
	}
	p.breakpoints[tid] = pcs
	if p.Traps == nil {
		return setDebug(tid, &p.WatchRegisters, pcs...)
	}
	return p.Traps.set(tid, pcs)
}

// BreakpointsOf returns the breakpoints of a thread.
func (p *Process) BreakpointsOf(tid int) []uint64 { return p.breakpoints[tid] }

// AdoptMemory makes the memory of a child that the process has forked the process's own.
func (p *Process) AdoptMemory(child *Memory) error {
	traps, err := p.Traps.inherited(child)
	if err != nil {
		return err
	}
	p.Memory.Close()
	p.Memory, p.Traps = child, traps
	return nil
}

// Resume resumes a stopped thread with a signal (0: none); steps: for one instruction. With
// ptrace.FlagResume, the thread does not stop at a breakpoint at its pc.
func (p *Process) Resume(t *Thread, signal syscall.Signal, steps bool) error {
	by := Resumption(ptrace.Cont)
	if x := p.Protection; x != nil {
		var err error
		if signal, err = x.Protect(t, signal); err != nil {
			return err
		}
		by = ptrace.ContToCall
	}
	if !p.Started {
		by = ptrace.ContToCall
	} else if steps {
		by = ptrace.Step
	}
	return p.Traps.resume(t, by, signal, steps)
}

// Entries returns the entries and exits of the engine. Their addresses do not change.
func (p *Process) Entries() (Span, error) {
	if p.entries.End == 0 {
		control, err := p.ReadControl()
		if err != nil {
			return Span{}, err
		}
		p.entries = Span{Start: control.TextLow, End: control.TextHigh}
	}
	return p.entries, nil
}

// ReadControl reads the engine's control.
func (p *Process) ReadControl() (*agent.RawControl, error) {
	return ReadStruct[agent.RawControl](p.Memory, p.Control)
}

// ReadThread reads the engine's data of a thread.
func (p *Process) ReadThread(index uint32) (*agent.RawRThread, error) {
	return ReadStruct[agent.RawRThread](p.Memory, agent.RThreadAddress(index))
}

// Identify finds a thread's index.
func (p *Process) Identify(t *Thread) error {
	if t.Index != 0 {
		return nil
	}
	control, err := p.ReadControl()
	if err != nil {
		return err
	}
	// The youngest first: they are the ones looked up.
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		r, err := p.ReadThread(i)
		if err != nil {
			continue // a slot that is not mapped yet, or not any more
		}
		if int(r.RealTID) == t.TID && r.State != agent.RNone {
			t.Index = i
			return nil
		}
	}
	return fmt.Errorf("%w (%d)", ErrNoThread, t.TID)
}

// SortedThreads are the threads by their index.
func (p *Process) SortedThreads() []*Thread {
	var list []*Thread
	for _, t := range p.Threads {
		p.Identify(t) // one that has just begun stays without a number
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Thread) int { return int(int64(a.Index) - int64(b.Index)) })
	return list
}

// ThreadNumbered returns the thread with an index in the recording; nil if there is none.
func (p *Process) ThreadNumbered(index uint32) *Thread {
	for _, t := range p.SortedThreads() {
		if t.Index == index && index != 0 {
			return t
		}
	}
	return nil
}

// WriteControl writes the engine's control.
func (p *Process) WriteControl(control *agent.RawControl) error {
	_, err := p.Memory.WriteAt(bytesOf(control), int64(p.Control))
	return err
}

// WriteThread writes the engine's data of a thread.
func (p *Process) WriteThread(index uint32, r *agent.RawRThread) error {
	_, err := p.Memory.WriteAt(bytesOf(r), int64(agent.RThreadAddress(index)))
	return err
}

// IsTrap reports whether a trap is a request of the engine, not a trap of the program.
func (p *Process) IsTrap(s *SignalStop) bool {
	return s.Signal == unix.SIGTRAP && s.Code == siginfo.Kernel && s.Regs.Rbx == agent.TrapMagic &&
		(p.TrapPC == 0 || s.Regs.Rip == p.TrapPC+1)
}

// Kill ends the process, and waits until it is gone.
func (p *Process) Kill() {
	if p.Detached || p.PID == 0 {
		return
	}
	unix.Kill(p.PID, unix.SIGKILL)
	for {
		stop, err := ptrace.Wait()
		if err != nil || stop.Kind == ptrace.Ended && stop.TID == p.PID {
			break
		}
	}
	if p.Memory != nil {
		p.Memory.Close()
	}
}

// OfAnotherProcess reports whether a new thread belongs to a process that the replayed one is
// forking. The new process stops at its start, which may be reported before the fork. It must not
// continue before that: its requests would be answered from its parent's memory and recording.
func (p *Process) OfAnotherProcess(tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(status), "\nTgid:")
	own, _, _ := strings.Cut(rest, "\n")
	group, err := strconv.Atoi(strings.TrimSpace(own))
	return found && err == nil && group != p.PID
}

// FailedThread returns a thread that was parked with the signal that ends the process.
func (p *Process) FailedThread() *Thread {
	for _, t := range p.SortedThreads() {
		if t.Final != nil && t.Final.Signal != 0 {
			return t
		}
	}
	return nil
}

// ErrNoThread says that a thread has no index in the recording yet.
var ErrNoThread = errors.New("replay: the engine does not know the thread")

// SharesWithTool reports whether a mapping is one that the process shares with the tool alone.
func (p *Process) SharesWithTool(start uint64) bool {
	return slices.ContainsFunc(p.Shared, func(x Span) bool { return x.Start == start })
}
