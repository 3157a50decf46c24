package replay

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Spun is memory that a thread reads again and again, and does not write.
type Spun struct {
	Addr evidence.Addr
	Size int
	// Name says what the memory is; empty if it has no name. Value is its contents.
	Name  string
	Value uint64
}

func (s *Spun) text() string {
	name := s.Name
	if name == "" {
		name = "memory"
	}
	return fmt.Sprintf("%s at %v, which holds %#x", name, s.Addr, s.Value)
}

const (
	spinSteps = 4096 // instructions within which it must have returned this many times:
	spinTurns = 4
	mostSpun  = 4
)

// spins finds the memory that a thread waits for if it computes without an end. The thread is
// stepped until it has returned to its place several times with the same accesses. nil: the
// accesses differ each time, or are all to its own stack.
func (j *judge) spins(t *tracee.Thread, p *image.Process) ([]Spun, error) {
	r, err := j.process.ReadThread(t.Index)
	if err != nil || r.Inside != 0 || t.Final != nil || t.Deferred != nil {
		return nil, err
	}
	low := tracee.StackLow(r)
	turn, err := j.turn(t, func(addr uint64) bool { return addr < low || addr >= r.StackHigh })
	if err != nil {
		return nil, err
	}
	var list []Spun
	for x := range turn {
		if x.written || turn[spinAccess{x.addr, x.size, true}] {
			continue
		}
		word := make([]byte, 8)
		if x.size > len(word) {
			continue
		}
		if _, err := j.process.Memory.ReadAt(word[:x.size], int64(x.addr)); err != nil {
			return nil, fmt.Errorf("replay: what thread %d spins on: %w", t.Index, err)
		}
		s := Spun{Addr: evidence.Addr(x.addr), Size: x.size, Value: binary.LittleEndian.Uint64(word)}
		if p != nil {
			s.Name = p.Place(s.Addr).Text
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Spun) int { return cmp.Compare(a.Addr, b.Addr) })
	return list[:min(len(list), mostSpun)], nil
}

type spinAccess struct {
	addr    uint64
	size    int
	written bool
}

// turn returns the accesses outside of a thread's stack between two arrivals at an instruction, if
// several iterations had the same ones. A repeated exchange counts as a read of the value found.
// Constants are left out.
func (j *judge) turn(t *tracee.Thread, beside func(uint64) bool) (map[spinAccess]bool, error) {
	if err := j.placer.SetStepping(t, true); err != nil {
		return nil, err
	}
	mapped, err := j.process.Mappings()
	if err != nil {
		return nil, err
	}
	var start uint64
	var last, now map[spinAccess]bool
	same := 0
	for range spinSteps {
		regs, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return nil, err
		}
		if regs.Rip == start || start == 0 {
			if same++; now == nil || !maps.Equal(last, now) {
				same = 0
			}
			if same == spinTurns {
				return now, nil
			}
			start, last, now = regs.Rip, now, map[spinAccess]bool{}
		}
		inst := j.process.Instruction(regs.Rip)
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
			now[spinAccess{addr, int(o.Size), o.Access == evidence.Write}] = true
		}
		if ended, err := stepOnce(j.process, t); ended || err != nil {
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
		case stop.Kind == ptrace.SignalStop && !IsFault(stop.Signal), stop.Kind == ptrace.Interrupted:
			continue
		}
		t.Stopped = stop.Kind != ptrace.Ended
		return true, nil
	}
	return true, nil
}
