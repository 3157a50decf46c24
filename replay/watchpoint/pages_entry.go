package watchpoint

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// entry is the instruction at which the program itself begins, with a trap there until the main thread reaches it. The dynamic linker runs before
// that on the same stack, and accesses it a hundred thousand times for the symbols of a C++ library; no frame of the program is
// there yet.
type entry struct {
	addr uint64 // 0: there is no trap
	own  [1]byte
}

// auxEntry is AT_ENTRY (elf.h).
const auxEntry = 9

// awaitEntry leaves the pages of the main thread's stack as they are until the program's entry, if the process has not come there yet.
func (p *pages) awaitEntry(maps tracee.Mappings) error {
	stack := mainStack(maps)
	if stack == nil || p.tr.process.Started || p.tr.stage.Rec == nil {
		return nil
	}
	addr := uint64(0)
	for _, a := range p.tr.stage.Rec.Manifest.Start.Auxv {
		if a.Type == auxEntry {
			addr = uint64(a.Value)
		}
	}
	if m := maps.Containing(addr); m == nil || m.Perms[2] != 'x' || p.pageOf(addr) != nil {
		return nil
	}
	for _, x := range p.list {
		x.later = x.start >= stack.Start && x.start < stack.End
	}
	if !slices.ContainsFunc(p.list, func(x *page) bool { return x.later }) {
		return nil
	}
	memory := p.tr.process.Memory
	if _, err := memory.ReadAt(p.entry.own[:], int64(addr)); err != nil {
		return fmt.Errorf("replay: the program's entry: %w", err)
	}
	if _, err := memory.WriteAt([]byte{tracee.Int3}, int64(addr)); err != nil {
		return fmt.Errorf("replay: the program's entry: %w", err)
	}
	p.entry.addr = addr
	p.tr.strays++ // until the entry is reached
	return nil
}

// entered handles the trap at the program's entry. done: a thread reached it.
func (p *pages) entered(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	e := &p.entry
	if e.addr == 0 || s.Signal != unix.SIGTRAP || s.Regs.Rip != e.addr+1 {
		return false, nil
	}
	regs := s.Regs
	regs.Rip = e.addr
	_, err = p.tr.process.Memory.WriteAt(e.own[:], int64(e.addr))
	if err = errors.Join(err, ptrace.SetRegisters(t.TID, &regs)); err != nil {
		return true, fmt.Errorf("replay: the program's entry: %w", err)
	}
	e.addr = 0
	p.tr.strays--
	for _, x := range p.list {
		x.later = false
	}
	for i := range p.tr.watches {
		p.tr.initial(i)
	}
	return true, p.tr.replay.Resume(t)
}
