package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
	"diagnose/replay/watchpoint"
)

var le = binary.LittleEndian

// AsFarAsItCan is the Ordinal of an event after all that a thread does.
const AsFarAsItCan = 1 << 40

// Hold keeps a thread back: its events from Ordinal on occur after another thread's event Until.
// If the other thread's log ends before, it must do that many more events, or wait for the thread
// that is kept back, or end.
type Hold struct {
	Thread  uint32
	Ordinal uint64
	Until   EventOf
}

// EventOf names an event.
type EventOf struct {
	Thread  uint32
	Ordinal uint64
}

// Reorder returns s with one thread held back and all else in its order, for FreeRequest.Schedule.
func Reorder(s eventlog.Schedule, h Hold) eventlog.Schedule {
	counts := s.Events()
	beyond := uint64(0)
	until := h.Until
	if last := counts[until.Thread]; until.Ordinal > last {
		beyond, until.Ordinal = min(until.Ordinal-last, math.MaxUint32), last
	}
	var out eventlog.Schedule
	held := uint64(0)
	open := until.Ordinal == 0 // there is nothing to wait for
	add := func(thread uint32, n uint64) {
		if n > 0 {
			out = append(out, eventlog.Turn{Thread: thread, Events: uint32(n)})
		}
	}
	release := func() {
		add(until.Thread, beyond)
		add(h.Thread, held)
		held, open = 0, true
	}
	done := map[uint32]uint64{}
	if open {
		release()
	}
	for _, turn := range s {
		for range turn.Events {
			done[turn.Thread]++
			if turn.Thread == h.Thread && done[turn.Thread] >= h.Ordinal && !open {
				held++
				continue
			}
			out = out.Add(turn.Thread)
			if turn.Thread == until.Thread && done[turn.Thread] == until.Ordinal && !open {
				release()
			}
		}
	}
	add(h.Thread, held)
	return out
}

// planEdits turns edits into hooks, inspections and changes of the image.
func (f *free) planEdits(rec *record.Recording, request *parts) error {
	inspect := maps.Clone(request.watching.Inspect)
	if inspect == nil {
		inspect = map[uint64]func(*Hit, *Stopped) error{}
	}
	stores := map[evidence.Moment][]Edit{} // a thread reaches a Moment once
	for _, e := range f.edits {
		switch {
		case e.Kind == EditDelaySignal:
			if err := f.planDelay(rec, &e); err != nil {
				return err
			}
		case e.OnHit && e.Kind != EditUndo && e.Kind != EditStore:
			return tracee.Inputf("replay: %q cannot be done at a hit of a watch", e.Kind)
		case e.OnHit:
			if len(request.watching.Watches) == 0 {
				return tracee.Inputf("replay: %q needs the watch whose hit it is about", e.Kind)
			}
			do := e.undoHit
			if e.Kind == EditStore {
				do = e.storeHit
			}
			inspect[e.Hit] = do(inspect[e.Hit])
		case e.Kind == EditStore:
			if stores[e.At] = append(stores[e.At], e); len(stores[e.At]) == 1 {
				do := func(s *Stopped) error { return storeAll(s, stores[e.At]) }
				request.Hooks = append(request.Hooks[:len(request.Hooks):len(request.Hooks)], Hook{At: e.At, Do: do})
			}
		default:
			do, err := e.hook()
			if err != nil {
				return err
			}
			request.Hooks = append(request.Hooks[:len(request.Hooks):len(request.Hooks)], Hook{At: e.At, Do: do})
		}
	}
	request.watching.Inspect = inspect
	return f.planMove(rec)
}

// checkHit returns an error if a hit is another than that of the edit.
func (e *Edit) checkHit(h *Hit) error {
	at := &e.At
	if at.Thread == 0 || at.Thread == h.Thread && at.Ordinal == h.Ordinal && at.PC == h.PC {
		return nil
	}
	return fmt.Errorf("replay: hit %d is by thread %d at %v after event %d, and not at %v", h.Number, h.Thread, h.PC, h.Ordinal, *at)
}

// undoHit restores a watched word's value from before the hit.
func (e Edit) undoHit(before func(*Hit, *Stopped) error) func(*Hit, *Stopped) error {
	return func(h *Hit, s *Stopped) error {
		if err := e.checkHit(h); err != nil {
			return err
		}
		if before != nil {
			if err := before(h, s); err != nil {
				return err
			}
		}
		w := &s.c.request.watching.Watches[h.Watch]
		word := le.AppendUint64(nil, h.Old)
		if _, err := s.c.Memory.WriteAt(word[:w.Size], int64(w.Addr)); err != nil {
			return fmt.Errorf("replay: undo hit %d: %w", h.Number, err)
		}
		s.c.tracing.SetKnown(h.Watch, h.Old)
		return nil
	}
}

// storeHit stores to a watched word, right after a hit of it.
func (e Edit) storeHit(before func(*Hit, *Stopped) error) func(*Hit, *Stopped) error {
	return func(h *Hit, s *Stopped) error {
		if err := e.checkHit(h); err != nil {
			return err
		}
		if before != nil {
			if err := before(h, s); err != nil {
				return err
			}
		}
		if err := store(s, e.Addr, e.Value, e.Size); err != nil {
			return err
		}
		w := &s.c.request.watching.Watches[h.Watch]
		var word [8]byte
		if _, err := s.c.Memory.ReadAt(word[:w.Size], int64(w.Addr)); err != nil {
			return fmt.Errorf("replay: store at hit %d: %w", h.Number, err)
		}
		s.c.tracing.SetKnown(h.Watch, le.Uint64(word[:]))
		return nil
	}
}

// hook returns the action of an edit at a Moment.
func (e Edit) hook() (func(*Stopped) error, error) {
	switch e.Kind {
	case EditKeepFreed:
		return func(s *Stopped) error { return keepFreed(s, e.Bytes) }, nil
	case EditPad:
		return func(s *Stopped) error { return pad(s, e.Bytes) }, nil
	case EditUndo:
		return undoStore, nil
	}
	return nil, tracee.Inputf("replay: no such edit: %q", e.Kind)
}

// skipCall returns from a function at its first instruction.
func skipCall(s *Stopped) error {
	regs, err := ptrace.GetRegisters(s.TID())
	if err != nil {
		return err
	}
	var back [8]byte
	if _, err := s.ReadMemory(evidence.Addr(regs.Rsp), back[:]); err != nil {
		return fmt.Errorf("replay: skip the call at %v: %w", s.Moment, err)
	}
	regs.Rip, regs.Rsp, regs.Rax = le.Uint64(back[:]), regs.Rsp+8, 0
	regs.Orig_rax = ^uint64(0)
	return ptrace.SetRegisters(s.TID(), &regs)
}

// entered returns the registers of the thread and the function of the heap at whose first instruction it is.
func entered(s *Stopped) (regs unix.PtraceRegs, symbol string, err error) {
	if regs, err = ptrace.GetRegisters(s.TID()); err != nil {
		return regs, "", err
	}
	p, err := s.Process()
	if err != nil {
		return regs, "", err
	}
	at, _ := p.SymbolAt(evidence.Addr(regs.Rip))
	return regs, at.Name, nil
}

// keepFreed has a call that frees an object leave it as it is. A call that resizes one, of so many bytes, is made one
// for a new object, to which the content is copied when it returns.
func keepFreed(s *Stopped, size uint64) error {
	regs, symbol, err := entered(s)
	if err != nil {
		return err
	}
	wanted := regs.Rsi
	switch agent.HeapFunction(symbol) {
	case "realloc":
	case "reallocarray":
		wanted *= regs.Rdx
	default:
		return skipCall(s)
	}
	if wanted == 0 { // it only frees
		return skipCall(s)
	}
	if size = min(size, wanted); size > mostKept {
		return tracee.Inputf("replay: the object of %d bytes of the call at %v cannot be kept: at most %d bytes can", size, s.Moment, mostKept)
	}
	content := make([]byte, size)
	if _, err := s.ReadMemory(evidence.Addr(regs.Rdi), content); err != nil {
		return fmt.Errorf("replay: keep the object of the call at %v: %w", s.Moment, err)
	}
	var back [8]byte
	if _, err := s.ReadMemory(evidence.Addr(regs.Rsp), back[:]); err != nil {
		return fmt.Errorf("replay: keep the object of the call at %v: %w", s.Moment, err)
	}
	thread, sp := s.Moment.Thread, regs.Rsp+8
	regs.Rdi, regs.Orig_rax = 0, ^uint64(0)
	if err := ptrace.SetRegisters(s.TID(), &regs); err != nil {
		return err
	}
	return s.AddBreak(Break{PC: evidence.Addr(le.Uint64(back[:])), Changes: true, Do: func(s *Stopped) error {
		regs, err := ptrace.GetRegisters(s.TID())
		if err != nil || s.Moment.Thread != thread || regs.Rsp != sp {
			return err
		}
		if regs.Rax != 0 {
			if err := s.WriteMemory(evidence.Addr(regs.Rax), content); err != nil {
				return fmt.Errorf("replay: keep the object of the call that returned at %v: %w", s.Moment, err)
			}
		}
		return ErrBreakOver
	}})
}

// mostKept bounds the content that is copied for a call that resizes an object.
const mostKept = 64 << 20

func storeAll(s *Stopped, edits []Edit) error {
	for _, e := range edits {
		if err := store(s, e.Addr, e.Value, e.Size); err != nil {
			return err
		}
	}
	return nil
}

// store writes a value into memory.
func store(s *Stopped, addr evidence.Addr, value uint64, size int) error {
	if size < 1 || size > 8 {
		return tracee.Inputf("replay: a store of %d bytes at %v", size, s.Moment)
	}
	if _, err := s.c.Memory.WriteAt(le.AppendUint64(nil, value)[:size], int64(addr)); err != nil {
		return fmt.Errorf("replay: store to %v at %v: %w", addr, s.Moment, err)
	}
	return nil
}

// pad makes an allocation larger.
func pad(s *Stopped, by uint64) error {
	regs, symbol, err := entered(s)
	if err != nil {
		return err
	}
	size := &regs.Rdi
	switch agent.HeapFunction(symbol) {
	case "malloc", "valloc", agent.APINew.String(), agent.APINewArray.String():
	case "calloc":
		regs.Rdi, regs.Rsi = regs.Rdi*regs.Rsi, 1
	case "reallocarray":
		regs.Rsi, regs.Rdx = regs.Rsi*regs.Rdx, 1
		size = &regs.Rsi
	case "realloc", "aligned_alloc", "memalign":
		size = &regs.Rsi
	case "posix_memalign":
		size = &regs.Rdx
	default:
		return tracee.Inputf("replay: %v is in %q, which is no function that allocates", s.Moment, symbol)
	}
	if *size+by < *size {
		return tracee.Inputf("replay: an object of %d bytes cannot be padded by %d", *size, by)
	}
	*size += by
	regs.Orig_rax = ^uint64(0)
	return ptrace.SetRegisters(s.TID(), &regs)
}

// undoStore executes the thread's next instruction and restores the memory that it writes.
func undoStore(s *Stopped) error {
	regs, err := ptrace.GetRegisters(s.TID())
	if err != nil {
		return err
	}
	at, size, err := storedBy(s.c.Process, &regs)
	if err != nil {
		return fmt.Errorf("replay: undo the store at %v: %w", s.Moment, err)
	}
	before := make([]byte, size)
	if _, err := s.ReadMemory(at, before); err != nil {
		return fmt.Errorf("replay: undo the store at %v: %w", s.Moment, err)
	}
	if err := s.step(); err != nil {
		return err
	}
	_, err = s.c.Memory.WriteAt(before, int64(at))
	return err
}

// storedBy returns which memory the instruction at rip writes.
func storedBy(p *tracee.Process, regs *ptrace.Registers) (evidence.Addr, uint64, error) {
	inst := p.Instruction(regs.Rip)
	if inst == nil {
		return 0, 0, errors.New("it is no instruction")
	}
	general := tracee.GeneralRegisters(regs)
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Repeated || o.Size == 0 || watchpoint.CodeOf(o.Access)&evidence.CodeWrite == 0 {
			continue
		}
		addr, known := o.Memory.Address(func(reg x86.Reg) (uint64, bool) {
			if !reg.General() {
				return 0, false
			}
			return general[reg], true
		})
		switch o.Memory.Segment {
		case x86.SegFS:
			addr += regs.Fs_base
		case x86.SegGS:
			addr += regs.Gs_base
		}
		if known {
			return evidence.Addr(addr), uint64(o.Size), nil
		}
	}
	return 0, 0, fmt.Errorf("%s does not store to memory once", inst.Op)
}
