package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// process is the replayed process under ptrace: its memory, its threads, and the engine's data in
// it. Only its memory may be used outside of the tracing kernel thread.
type process struct {
	pid     int
	memory  *processMemory
	threads map[int]*thread
	// control is the address of the engine's control; 0 before DG_TRAP_HELLO. trapPC is the
	// address of the engine's trap instruction.
	control uint64
	trapPC  uint64
	// started: the engine runs in this process, or ran in its parent.
	started bool
	// mapped is the memory that the tool maps in the process for its own code and data.
	mapped []span
	// library is the recording library's code, once it has been looked up. libraryPath is the
	// library's file.
	library     []span
	libraryPath string
	// watchRegisters are the debug registers that watches use in each thread.
	watchRegisters watchRegisters
	// detached: the process was handed over.
	detached bool
	// allowed are the processors that the process could use before pin; nil: it was not pinned.
	allowed *unix.CPUSet
	// files says how the process's files are found.
	files image.Options
	// toProgram replaces registers in code that the tool has placed in the process by those in the
	// program's text.
	toProgram func(*ptrace.Registers)
	// movedFrom returns the program's instruction that the tool has placed right before pc; nil:
	// none.
	movedFrom func(pc uint64) *x86.Inst
}

func (p *process) readControl() (*agent.RawControl, error) {
	return readStruct[agent.RawControl](p.memory, p.control)
}

// rthread reads the engine's data of a thread.
func (p *process) rthread(index uint32) (*agent.RawRThread, error) {
	return readStruct[agent.RawRThread](p.memory, agent.RThreadAddress(index))
}

// identify finds a thread's index.
func (p *process) identify(t *thread) error {
	if t.index != 0 {
		return nil
	}
	control, err := p.readControl()
	if err != nil {
		return err
	}
	// The youngest first: they are the ones looked up.
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		r, err := p.rthread(i)
		if err != nil {
			continue // a slot that is not mapped yet, or not any more
		}
		if int(r.RealTID) == t.tid && r.State != agent.RNone {
			t.index = i
			return nil
		}
	}
	return fmt.Errorf("%w (%d)", errNoThread, t.tid)
}

// sortedThreads are the threads by their index.
func (p *process) sortedThreads() []*thread {
	var list []*thread
	for _, t := range p.threads {
		p.identify(t) // one that has just begun stays without a number
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thread) int { return int(int64(a.index) - int64(b.index)) })
	return list
}

func (p *process) byIndex(index uint32) *thread {
	for _, t := range p.sortedThreads() {
		if t.index == index && index != 0 {
			return t
		}
	}
	return nil
}

// writeStruct writes one of the Raw types of package agent.
func (p *process) writeStruct(addr uint64, v any) error {
	encoded, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return err
	}
	_, err = p.memory.WriteAt(encoded, int64(addr))
	return err
}

// isTrap reports whether a trap is a request of the engine, not a trap of the program.
func (p *process) isTrap(s *signalStop) bool {
	return s.signal == unix.SIGTRAP && s.code == siKernel && s.regs.Rbx == agent.TrapMagic &&
		(p.trapPC == 0 || s.regs.Rip == p.trapPC+1)
}

// kill ends the process, and waits until it is gone.
func (p *process) kill() {
	if p.detached || p.pid == 0 {
		return
	}
	unix.Kill(p.pid, unix.SIGKILL)
	for {
		stop, err := ptrace.Wait()
		if err != nil || stop.Kind == ptrace.Ended && stop.TID == p.pid {
			break
		}
	}
	if p.memory != nil {
		p.memory.Close()
	}
}

// another reports whether a new thread belongs to a process that the replayed one is forking. The
// new process stops at its start, which may be reported before the fork. It must not continue
// before that: its requests would be answered from its parent's memory and recording.
func (p *process) another(tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(status), "\nTgid:")
	own, _, _ := strings.Cut(rest, "\n")
	group, err := strconv.Atoi(strings.TrimSpace(own))
	return found && err == nil && group != p.pid
}

// dead returns a thread that was parked with the signal that ends the process.
func (p *process) dead() *thread {
	for _, t := range p.sortedThreads() {
		if t.final != nil && t.final.signal != 0 {
			return t
		}
	}
	return nil
}

var errNoThread = errors.New("replay: the engine does not know the thread")
