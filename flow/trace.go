package flow

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/replay/record/eventlog"
)

// Trace is what the threads of a replay executed, in the order in time.
type Trace struct {
	steps *steps
	// last is the last step of each thread.
	last         map[uint32]int32
	instructions map[uint64]*instruction
	calls        map[evidence.Addr]string // functions of the recording library, by address
	outputs      map[event][]output
	mappings     map[event][]eventlog.MemoryChange
	// written are the steps that wrote to a word of 8 bytes, ranges what steps in the recording library wrote; both
	// in ascending order of the steps.
	written map[uint64][]int32
	ranges  []writtenRange
	heap    heap
	// blockWrites are what the steps of each block write.
	blockWrites []writes
	// returned are the steps that return from functions, of each thread; nil: they were not looked for yet.
	returned map[uint32]*returns
	// Cut: there were more instructions than asked for, and the trace has no end.
	Cut bool
}

// step is one instruction, before it is executed, or what happened in the recording library.
type step struct {
	pc uint64 // of a step in the library: the address at which the thread continues
	// general are the registers before an instruction, and those after a step in the library.
	general        [16]uint64
	fsBase, gsBase uint64
	thread         uint32
	library        bool
	holds          bool  // the condition of a conditional move
	previous       int32 // of the same thread; -1: none
	// ordinal is that of the thread's last event, after a step in the library.
	ordinal uint64
	called  evidence.Addr // the library's function, if it is known
}

// instruction describes the code at one address.
type instruction struct {
	inst      *x86.Inst
	transfers []transfer.Transfer
	// writes are the spaces that it writes; memory: it writes memory.
	writes writes
	memory bool
}

// event names an event of a thread.
type event struct {
	thread  uint32
	ordinal uint64
}

// output is memory that an event wrote.
type output struct {
	addr evidence.Addr
	size uint64
	call string
}

// writtenRange is memory that a step in the library wrote.
type writtenRange struct {
	at   int32
	addr uint64
	size uint64
	kind Kind
	call string
	from uint64 // of a copy
}

// Len is the number of steps.
func (t *Trace) Len() int { return t.steps.len() }

// Threads is how many threads executed the steps.
func (t *Trace) Threads() int { return len(t.last) }

// Step is one step as others see it.
type Step struct {
	Thread uint32
	// PC is the instruction's address, or where a thread returned to from the recording library.
	PC evidence.Addr
	// Library: the step is not an instruction, but what happened in the recording library.
	Library bool
	// Call is the function of the library that was called, if it is known, and Entry its first instruction.
	Call  string
	Entry evidence.Addr
	Inst  *x86.Inst
	// Ordinal is that of the thread's last event.
	Ordinal uint64
}

// Step returns step n.
func (t *Trace) Step(n int) Step {
	s := t.steps.at(n)
	out := Step{Thread: s.thread, PC: evidence.Addr(s.pc), Library: s.library, Ordinal: s.ordinal}
	if s.library {
		if name, ok := t.calls[s.called]; ok {
			out.Call, out.Entry = name, s.called
		}
	} else if i := t.instructions[s.pc]; i != nil {
		out.Inst = i.inst
	}
	return out
}

// Register is a general register's value before step n, or after it if it is one of the library.
func (t *Trace) Register(n int, r x86.Reg) uint64 { return t.steps.at(n).general[r] }

// Last is the last step of a thread: the instruction that failed, if the thread failed. -1: there is none.
func (t *Trace) Last(thread uint32) int {
	if n, ok := t.last[thread]; ok {
		return int(n)
	}
	return -1
}

// Previous is the step before of the same thread; -1: there is none.
func (t *Trace) Previous(n int) int { return int(t.steps.at(n).previous) }

// Next is the step after of the same thread; -1: there is none.
func (t *Trace) Next(n int) int {
	for k := n + 1; k < t.steps.len(); k++ {
		if int(t.steps.at(k).previous) == n {
			return k
		}
	}
	return -1
}

// Location is a run of bytes of a register of a thread, or of memory.
type Location struct {
	Thread uint32 // of a register
	Space  transfer.Space
	Num    uint8 // as transfer.Place
	Off    int   // of a register
	Addr   evidence.Addr
	Size   int
}

// Memory is a run of bytes of memory.
func Memory(addr evidence.Addr, size int) Location {
	return Location{Space: transfer.Memory, Addr: addr, Size: size}
}

// Register is a general register of a thread, from its lowest byte on.
func Register(thread uint32, r x86.Reg, size int) Location {
	return Location{Thread: thread, Space: transfer.General, Num: uint8(r), Size: size}
}

// String names the location in messages.
func (l Location) String() string {
	if l.Space == transfer.Memory {
		return fmt.Sprintf("%d bytes at %v", l.Size, l.Addr)
	}
	return fmt.Sprintf("bytes %d to %d of register %d of space %d in thread %d", l.Off, l.Off+l.Size-1, l.Num, l.Space, l.Thread)
}

// intersect returns the part of l that is in other, and how far from the start of other it begins.
func (l Location) intersect(other Location) (part Location, off int, ok bool) {
	if l.Space != other.Space {
		return part, 0, false
	}
	if l.Space == transfer.Memory {
		first, end := max(l.Addr, other.Addr), min(l.Addr+evidence.Addr(l.Size), other.Addr+evidence.Addr(other.Size))
		return Memory(first, int(end-first)), int(first - other.Addr), first < end
	}
	if l.Thread != other.Thread || l.Num != other.Num {
		return part, 0, false
	}
	first, end := max(l.Off, other.Off), min(l.Off+l.Size, other.Off+other.Size)
	part = l
	part.Off, part.Size = first, end-first
	return part, first - other.Off, first < end
}

// slice is a run of bytes within the location.
func (l Location) slice(off, size int) Location {
	if l.Space == transfer.Memory {
		l.Addr += evidence.Addr(off)
	} else {
		l.Off += off
	}
	l.Size = size
	return l
}
