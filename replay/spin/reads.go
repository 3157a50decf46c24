package spin

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Word is memory that a thread reads again and again, and does not write.
type Word struct {
	Addr evidence.Addr
	// Size is 1 to 8 bytes. Value is the contents.
	Size  int
	Value uint64
}

const (
	mostSteps = 4096 // instructions within which it must have returned this many times:
	turns     = 4
	mostWords = 4
)

// Reads finds the memory outside of its stack that a stopped thread waits for if it computes without
// an end. The thread is stepped until it has returned to its place several times with the same
// accesses. nil: the accesses differ each time, or are all to its own stack.
func Reads(p *tracee.Process, t *tracee.Thread) ([]Word, error) {
	r, err := p.ReadThread(t.Index)
	if err != nil {
		return nil, err
	}
	low := tracee.StackLow(r)
	turn, err := turn(p, t, func(addr uint64) bool { return addr < low || addr >= r.StackHigh })
	if err != nil {
		return nil, err
	}
	var list []Word
	for x := range turn {
		if x.written || turn[access{x.addr, x.size, true}] {
			continue
		}
		word := make([]byte, 8)
		if x.size > len(word) {
			continue
		}
		if _, err := p.Memory.ReadAt(word[:x.size], int64(x.addr)); err != nil {
			return nil, fmt.Errorf("replay: what thread %d spins on: %w", t.Index, err)
		}
		list = append(list, Word{evidence.Addr(x.addr), x.size, binary.LittleEndian.Uint64(word)})
	}
	slices.SortFunc(list, func(a, b Word) int { return cmp.Compare(a.Addr, b.Addr) })
	return list[:min(len(list), mostWords)], nil
}

type access struct {
	addr    uint64
	size    int
	written bool
}

// turn returns the accesses outside of a thread's stack between two arrivals at an instruction, if
// several iterations had the same ones. A repeated exchange counts as a read of the value found.
// Constants are left out.
func turn(p *tracee.Process, t *tracee.Thread, beside func(uint64) bool) (map[access]bool, error) {
	mapped, err := p.Mappings()
	if err != nil {
		return nil, err
	}
	var start uint64
	var last, now map[access]bool
	same := 0
	for range mostSteps {
		regs, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return nil, err
		}
		if regs.Rip == start || start == 0 {
			if same++; now == nil || !maps.Equal(last, now) {
				same = 0
			}
			if same == turns {
				return now, nil
			}
			start, last, now = regs.Rip, now, map[access]bool{}
		}
		inst := p.Instruction(regs.Rip)
		if inst == nil {
			return nil, nil
		}
		for i := range inst.Operands {
			o := &inst.Operands[i]
			if !o.IsMemory || o.Access == "" || o.Size == 0 {
				continue
			}
			addr, known := tracee.OperandAddress(o, &regs)
			if m := mapped.Containing(addr); !known || !beside(addr) || m == nil || m.Perms[1] != 'w' && m.Perms[3] != 's' {
				continue
			}
			// An exchange that finds a lock taken stores the value that it found.
			now[access{addr, int(o.Size), o.Access == evidence.Write}] = true
		}
		if ended, err := stepOnce(p, t); ended || err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// stepOnce executes one instruction of a stopped thread. ended: the thread stopped for another
// reason.
func stepOnce(p *tracee.Process, t *tracee.Thread) (ended bool, err error) {
	const signals = 8 // that were pending
	for range signals {
		stop, err := p.Traps.StepOnce(t.TID)
		if err != nil {
			return true, err
		}
		switch {
		case stop.Kind == ptrace.SignalStop && stop.Signal == unix.SIGTRAP:
			return false, nil
		case stop.Kind == ptrace.SignalStop && !tracee.IsFault(stop.Signal), stop.Kind == ptrace.Interrupted:
			continue
		}
		t.Stopped = stop.Kind != ptrace.Ended
		return true, nil
	}
	return true, nil
}
