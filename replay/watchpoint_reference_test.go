package replay_test

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay"
	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
)

// seenHit has the part of an access that both sources report.
type seenHit struct {
	Watch    int
	Kind     evidence.AccessCode
	By       evidence.By
	Old, New uint64
	// PC is 0 for accesses outside of the program's own object: they have other addresses while
	// the program is recorded.
	PC uint64
}

// stepper is the second source of accesses. It executes a program one instruction after the other,
// without any watchpoint, and finds the accesses of each from the registers before it and the
// memory after it.
type stepper struct {
	watches []replay.Watch
	memory  *ptrace.Memory
	threads map[int]*stepped
	known   []uint64
	insts   map[uint64]*x86.Inst
	low     uint64 // the program's own object
	high    uint64
	hits    []seenHit
}

// stepped is the instruction that a thread is executing.
type stepped struct {
	regs ptrace.Registers
	inst *x86.Inst
}

// reference runs a program from main to its end.
func reference(t *testing.T, exe, stdin string, main uint64, low, high uint64, watches []replay.Watch) []seenHit {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "in")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString(stdin); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := &stepper{watches: watches, threads: map[int]*stepped{}, known: make([]uint64, len(watches)), insts: map[uint64]*x86.Inst{}, low: low, high: high}
	err = ptrace.OnThread(func() error {
		l := launch.Launch{Path: exe, Args: []string{exe}, Environ: os.Environ(), Files: []uintptr{in.Fd(), null.Fd(), null.Fd()},
			Options: ptrace.ExitKill | ptrace.TraceClone}
		pid, err := l.Start()
		if err != nil {
			return err
		}
		return s.run(pid, main)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.hits
}

func (s *stepper) run(pid int, main uint64) error {
	var err error
	if s.memory, err = ptrace.OpenMemory(pid); err != nil {
		return err
	}
	defer s.memory.Close()
	if err := s.runTo(pid, main); err != nil {
		return err
	}
	for i := range s.watches {
		if s.known[i], err = s.word(i); err != nil {
			return err
		}
	}
	if err := s.step(pid, 0); err != nil {
		return err
	}
	for {
		stop, err := ptrace.Wait()
		if err != nil {
			return err
		}
		if stop.Kind == ptrace.Ended {
			delete(s.threads, stop.TID)
			if stop.TID == pid {
				return nil
			}
			continue
		}
		if err := s.stopped(stop); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// runTo runs the process up to an instruction. It uses no debug register, which some machines lack.
func (s *stepper) runTo(pid int, pc uint64) error {
	own := make([]byte, 1)
	if _, err := s.memory.ReadAt(own, int64(pc)); err != nil {
		return err
	}
	if _, err := s.memory.WriteAt([]byte{0xcc}, int64(pc)); err != nil {
		return err
	}
	if err := ptrace.Cont(pid, 0); err != nil {
		return err
	}
	if _, err := ptrace.WaitFor(pid); err != nil {
		return err
	}
	if _, err := s.memory.WriteAt(own, int64(pc)); err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(pid)
	if err != nil {
		return err
	}
	regs.Rip = pc
	return ptrace.SetRegisters(pid, &regs)
}

func (s *stepper) stopped(stop ptrace.Stop) error {
	signal := syscall.Signal(0)
	switch {
	case stop.Kind == ptrace.SignalStop && stop.Signal == unix.SIGTRAP:
		if err := s.executed(s.threads[stop.TID]); err != nil {
			return err
		}
	case stop.Kind == ptrace.SignalStop:
		signal = stop.Signal
	}
	if err := s.step(stop.TID, signal); err != nil {
		return err
	}
	if signal != 0 {
		s.threads[stop.TID] = nil // its handler runs before the instruction
	}
	return nil
}

func (s *stepper) step(tid int, signal syscall.Signal) error {
	regs, err := ptrace.GetRegisters(tid)
	if err != nil {
		return err
	}
	inst := s.insts[regs.Rip]
	if inst == nil {
		var code [15]byte
		if _, err := s.memory.ReadAt(code[:], int64(regs.Rip)); err != nil {
			return err
		}
		x, err := x86.Decode(code[:], regs.Rip)
		if err != nil {
			return err
		}
		inst = &x
		s.insts[regs.Rip] = inst
	}
	s.threads[tid] = &stepped{regs, inst}
	return ptrace.Step(tid, signal)
}

// executed notes what the instruction accessed.
func (s *stepper) executed(x *stepped) error {
	if x == nil {
		return nil
	}
	for i := range s.watches {
		kind := s.kind(x, &s.watches[i])
		now, err := s.word(i)
		if err != nil {
			return err
		}
		hit := seenHit{Watch: i, Kind: kind, Old: s.known[i], New: now}
		if x.inst.Op == "syscall" {
			hit.Kind, hit.By = s.called(x, &s.watches[i]), evidence.ByCall
		} else if x.regs.Rip >= s.low && x.regs.Rip < s.high {
			hit.PC = x.regs.Rip
		}
		switch {
		case hit.Kind != evidence.CodeUnknown:
			s.hits = append(s.hits, hit)
			s.known[i] = now
		case hit.Old != hit.New && len(s.threads) == 1:
			return errors.New("memory changed that nothing wrote to")
		}
	}
	return nil
}

func (s *stepper) kind(x *stepped, w *replay.Watch) evidence.AccessCode {
	regs := &x.regs
	values := [...]uint64{regs.Rax, regs.Rdx, regs.Rcx, regs.Rbx, regs.Rsi, regs.Rdi, regs.Rbp, regs.Rsp,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
	var kind evidence.AccessCode
	for i := range x.inst.Operands {
		o := &x.inst.Operands[i]
		if !o.IsMemory || o.Access == "" || o.Repeated && regs.Rcx == 0 {
			continue
		}
		addr, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) {
			if !r.General() {
				return 0, false
			}
			return values[r], true
		})
		if o.Memory.Segment == x86.SegFS {
			addr += regs.Fs_base
		}
		if !known || addr >= uint64(w.Addr)+uint64(w.Size) || addr+uint64(o.Size) <= uint64(w.Addr) {
			continue
		}
		switch o.Access {
		case evidence.Read:
			kind |= evidence.CodeRead
		case evidence.Write:
			kind |= evidence.CodeWrite
		case evidence.ReadWrite:
			kind |= evidence.CodeReadWrite
		}
	}
	return kind
}

// called returns how read and write access their buffers.
func (s *stepper) called(x *stepped, w *replay.Watch) evidence.AccessCode {
	from, count := x.regs.Rsi, x.regs.Rdx
	kind := evidence.CodeWrite
	switch x.regs.Rax {
	case unix.SYS_READ:
		const input = 12 // bytes of input
		count = min(count, input)
	case unix.SYS_WRITE:
		kind = evidence.CodeRead
	default:
		return evidence.CodeUnknown
	}
	if from >= uint64(w.Addr)+uint64(w.Size) || from+count <= uint64(w.Addr) {
		return evidence.CodeUnknown
	}
	return kind
}

func (s *stepper) word(watch int) (uint64, error) {
	var p [8]byte
	w := &s.watches[watch]
	_, err := s.memory.ReadAt(p[:w.Size], int64(w.Addr))
	return binary.LittleEndian.Uint64(p[:]), err
}
