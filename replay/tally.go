package replay

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// tallies count arrivals at instructions by code of ours in the process: some 3 ns each, where a breakpoint takes 40 us.
// They are installed while all threads are in the engine, and removed at the next stop.
type tallies struct {
	d     *debugging
	in    *inline.Inlined
	sites []*inline.Site
	// data is a page with a word to save a register in, and the counts that are still to come.
	data  uint64
	first []uint64 // what the counts were at first
	// again are the arrivals that are counted twice: of a thread that had arrived when the code was installed.
	again []uint64
	turns uint64
}

// Places of words in the page, in bytes.
const (
	tallySaved  = 0
	tallyCounts = 64
	mostTallies = 16
)

// Tally counts, from this stop to the next one, the arrivals at instructions at full speed. One at which the thread has
// stopped does not count. The process stops at the Count-th arrival, if it is not 0, with the kind StopTally. possible is false, and
// nothing is counted, where the code leaves no room for that, or a thread may be in that code.
func (s *DebugStop) Tally(at []Arrivals) (possible bool, err error) {
	d := s.c.debugging
	if s.thread == nil || len(at) == 0 || len(at) > mostTallies {
		return false, nil
	}
	x := &tallies{d: d}
	x.in = inline.New(d.c.Process, d.c.Stage(), x, d.c.placer.Exposed)
	for i, a := range at {
		inst := d.c.Instruction(uint64(a.PC))
		if inst == nil || x.in.ReplacedByEngine(uint64(a.PC), uint64(inst.Len)) {
			return false, nil
		}
		x.sites = append(x.sites, &inline.Site{Inst: *inst, Number: i})
		const never = 1 << 62
		count := a.Count
		if count == 0 {
			count = never
		}
		again := uint64(0)
		if s.Kind != StopEvent && a.PC == s.Moment.PC {
			again = 1
		}
		x.first, x.again = append(x.first, count+again), append(x.again, again)
	}
	return x.install(s.thread)
}

func (x *tallies) install(t *tracee.Thread) (possible bool, err error) {
	c := x.d.c
	for _, other := range c.SortedThreads() {
		r, err := c.ReadThread(other.Index)
		if err == nil && r.Inside == 0 && other == t {
			regs, err := c.ProgramRegisters(t)
			if err != nil {
				return false, err
			}
			x.in.Returns = append(x.in.Returns, regs.Rip)
			continue
		}
		if err != nil || r.Inside == 0 {
			return false, nil // it may be at any instruction
		}
		f, err := tracee.ReadStruct[agent.RawFrame](c.Memory, r.Inside)
		if err != nil {
			return false, err
		}
		x.in.Returns = append(x.in.Returns, f.RIP, f.Origin)
	}
	control, err := c.ReadControl()
	if err != nil {
		return false, err
	}
	x.turns = control.Turns
	result, err := ptrace.SystemCall(t.TID, unix.SYS_MMAP, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil || result < 0 {
		return false, err
	}
	x.data = uint64(result)
	var words []byte
	for _, n := range x.first {
		words = binary.LittleEndian.AppendUint64(words, n)
	}
	if _, err := c.Memory.WriteAt(words, int64(x.data+tallyCounts)); err != nil {
		return false, err
	}
	left, err := x.in.Install(t, x.sites)
	if err != nil {
		return false, err
	}
	c.placer.UseInlined(x.in)
	x.d.tallies = x
	for _, s := range x.sites {
		if !s.Moved() || len(left) > 0 {
			return false, x.remove()
		}
	}
	return true, nil
}

// remove restores the program's text.
func (x *tallies) remove() error {
	x.d.tallies = nil
	for _, s := range x.sites {
		if err := x.in.Expose(s.Inst.PC); err != nil {
			return err
		}
	}
	for _, s := range x.sites {
		if err := x.d.c.Memory.Restore(s.Inst.PC); err != nil {
			return err
		}
	}
	x.d.c.placer.UseInlined(nil)
	return nil
}

// counts returns the arrivals so far; nil: threads have changed, so they may be of several threads.
func (x *tallies) counts() ([]uint64, error) {
	if x == nil {
		return nil, nil
	}
	control, err := x.d.c.ReadControl()
	if err != nil || control.Turns != x.turns {
		return nil, err
	}
	words := make([]byte, 8*len(x.first))
	if _, err := x.d.c.Memory.ReadAt(words, int64(x.data+tallyCounts)); err != nil {
		return nil, err
	}
	var list []uint64
	for i, n := range x.first {
		list = append(list, n-binary.LittleEndian.Uint64(words[8*i:])-x.again[i])
	}
	return list, nil
}

// Shared implements inline.Code.
func (x *tallies) Shared(*inline.Assembler) error { return nil }

// Inline implements inline.Code. The code changes neither flags nor the stack. The page is not near the code:
// a processor takes stores near code for changes of it.
func (x *tallies) Inline(a *inline.Assembler, s *inline.Site) error {
	rax := func(opcode byte, at uint64) { // with its 64-bit address: A1 loads, A3 stores
		a.Write(binary.LittleEndian.AppendUint64([]byte{0x48, opcode}, x.data+at))
	}
	const load, store = 0xa1, 0xa3
	exchange := []byte{0x48, 0x91} // xchg %rax, %rcx
	count := tallyCounts + 8*uint64(s.Number)
	rax(store, tallySaved)
	rax(load, count)
	a.Write([]byte{0x48, 0x8d, 0x40, 0xff}) // lea -1(%rax), %rax
	rax(store, count)
	a.Write(exchange)
	a.Write([]byte{0xe3, patch.JumpSize}) // jrcxz: over the jump
	a.ToLabel("on", 0xe9)
	a.Write(exchange)
	rax(load, tallySaved)
	a.Trap(s)
	a.ToLabel("done", 0xe9)
	a.Label("on")
	a.Write(exchange)
	rax(load, tallySaved)
	a.Label("done")
	return a.Program(&s.Inst)
}

// Trapped implements inline.Code.
func (x *tallies) Trapped(t *tracee.Thread, s *tracee.SignalStop, site *inline.Site) error {
	regs := s.Regs
	regs.Rip, regs.Orig_rax = site.Inst.PC, ^uint64(0)
	if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
		return err
	}
	return x.d.stop(t, StopTally)
}

// Faulted implements inline.Code. The code has no instruction of its own that faults.
func (x *tallies) Faulted(*tracee.Thread, *tracee.SignalStop) (bool, error) { return false, nil }

// handleTally handles a signal of a thread in the code of tallies. done: nothing is left to do.
func (d *debugging) handleTally(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	if d == nil || d.tallies == nil {
		return false, nil
	}
	return d.tallies.in.HandleStop(t, s)
}

// original changes the registers of a thread in the code of tallies to those of the program.
func (d *debugging) original(regs *ptrace.Registers) {
	if d != nil && d.tallies != nil {
		d.tallies.in.Original(regs)
	}
}

// takeTallies returns the counts at a stop, and removes the code.
func (d *debugging) takeTallies(t *tracee.Thread) ([]uint64, error) {
	x := d.tallies
	if x == nil {
		return nil, nil
	}
	list, err := x.counts()
	if err != nil {
		return nil, err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return nil, err
	}
	if x.in.Original(&regs) {
		if err := ptrace.SetRegisters(t.TID, &regs); err != nil {
			return nil, err
		}
	}
	return list, x.remove()
}

var _ inline.Code = (*tallies)(nil)
