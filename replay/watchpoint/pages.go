package watchpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// pages is the back end for machines whose debug registers do not stop a thread. The pages that
// have watched words are protected: an access to one faults. The page then gets its own protection,
// the thread executes the one instruction, and the page is protected again. The registers before
// the instruction say which bytes it accesses. Accesses to the main thread's stack count from the program's entry on.
//
// The kernel's accesses for a system call would fail. So threads stop at their calls, and the pages
// are not protected during those that may access them.
type pages struct {
	tr   *Tracing
	list []*page // in ascending order
	// syscall is the address of a system-call instruction, which threads execute for the tool.
	syscall uint64
	// calls are the system calls that threads make, by the kernel's id of the thread.
	calls map[int]*ptrace.Call
	// cleared are the addresses of the words that the kernel clears when threads end.
	cleared map[int]uint64
	// calling is the thread for whose call the pages are not protected; nil: none.
	calling *tracee.Thread
	// grown: the pages that the main thread's stack would grow to exist.
	grown bool
	// asked: a SIGSTOP came while a thread was stepped. It is sent again.
	asked bool
	// repeated counts the faults in a row at pages that were not protected any more.
	repeated int
	work     work
	entry    entry
}

// page is a page that has watched words.
type page struct {
	start uint64
	// own is the program's protection, if the page is mapped.
	own    int
	mapped bool
	// onlyWrites: no read of its words is traced.
	onlyWrites bool
	// covered: it is protected.
	covered bool
	// later: it is not, until the program's entry.
	later bool
}

// open reports whether a page is not protected that is to be.
func (x *page) open() bool { return !x.covered && !x.later && x.mapped && x.covering() != x.own }

func newPages(tr *Tracing) (*pages, error) {
	p := &pages{tr: tr, calls: map[int]*ptrace.Call{}, cleared: map[int]uint64{}}
	for _, w := range tr.watches {
		start := uint64(w.Addr) &^ (tracee.PageSize - 1)
		x := p.pageOf(start)
		if x == nil {
			x = &page{start: start, onlyWrites: true}
			p.list = append(p.list, x)
		}
		x.onlyWrites = x.onlyWrites && w.Writes
	}
	slices.SortFunc(p.list, func(a, b *page) int { return cmp.Compare(a.start, b.start) })
	maps, err := tracee.ReadMaps(tr.process.PID)
	if err != nil {
		return nil, err
	}
	p.refresh(maps)
	if err := p.findSyscall(maps); err != nil {
		return nil, err
	}
	return p, p.awaitEntry(maps)
}

// watchByPages selects this back end.
func (tr *Tracing) watchByPages() error {
	p, err := newPages(tr)
	if err != nil {
		return err
	}
	tr.process.Pin()
	tr.pages, tr.process.Protection = p, p
	tr.Counts.Backend = BackendPages
	return nil
}

// findSyscall finds a system-call instruction that the program does not lose: the vDSO's, or any.
func (p *pages) findSyscall(maps tracee.Mappings) error {
	code := []byte{0x0f, 0x05}
	search := func(m *tracee.Mapping) bool {
		const most = 4 << 20
		text := make([]byte, min(m.Size(), most))
		if _, err := p.tr.process.Memory.Memory.ReadAt(text, int64(m.Start)); err != nil {
			return false
		}
		i := strings.Index(string(text), string(code))
		p.syscall = m.Start + uint64(max(i, 0))
		return i >= 0 && p.pageOf(p.syscall) == nil
	}
	for i := range maps {
		if maps[i].Path == "[vdso]" && search(&maps[i]) {
			return nil
		}
	}
	for i := range maps {
		if maps[i].Perms[2] == 'x' && maps[i].Path != "[vdso]" && search(&maps[i]) {
			return nil
		}
	}
	return &UnsupportedError{BackendPages, errors.New("the process has no system-call instruction")}
}

// pageOf returns the page that has an address; nil if it has no watched word.
func (p *pages) pageOf(addr uint64) *page {
	for _, x := range p.list {
		if addr-x.start < tracee.PageSize {
			return x
		}
	}
	return nil
}

// overlap reports whether a range has a page with watched words, or a part of one.
func (p *pages) overlap(addr, size uint64) bool {
	return slices.ContainsFunc(p.list, func(x *page) bool { return addr < x.start+tracee.PageSize && (addr+size > x.start || addr+size < addr) })
}

// refresh reads which protection the program has given the pages that are not protected.
func (p *pages) refresh(maps tracee.Mappings) {
	for _, x := range p.list {
		m := maps.Containing(x.start)
		if x.covered {
			continue
		}
		if x.mapped = m != nil; !x.mapped {
			continue
		}
		x.own = 0
		for i, bit := range []int{unix.PROT_READ, unix.PROT_WRITE, unix.PROT_EXEC} {
			if m.Perms[i] != '-' {
				x.own |= bit
			}
		}
	}
}

// covering returns the protection with which the accesses to a page fault.
func (x *page) covering() int {
	if x.onlyWrites {
		return x.own &^ unix.PROT_WRITE
	}
	return unix.PROT_NONE
}

// cover protects the pages. regs are the registers of the stopped thread that does it.
func (p *pages) cover(t *tracee.Thread, regs *ptrace.Registers) error {
	for _, x := range p.list {
		if !x.open() {
			continue
		}
		if err := p.protect(t, regs, x, x.covering()); err != nil {
			return err
		}
		x.covered = true
	}
	return nil
}

// uncover gives the page back to the program.
func (p *pages) uncover(t *tracee.Thread, regs *ptrace.Registers, x *page) error {
	if !x.covered {
		return nil
	}
	x.covered = false
	return p.protect(t, regs, x, x.own)
}

func (p *pages) uncoverAll(t *tracee.Thread, regs *ptrace.Registers) error {
	for _, x := range p.list {
		if err := p.uncover(t, regs, x); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) protect(t *tracee.Thread, regs *ptrace.Registers, x *page, how int) error {
	result, err := p.call(t, regs, unix.SYS_MPROTECT, x.start, tracee.PageSize, uint64(how))
	if err == nil && result != 0 {
		err = fmt.Errorf("replay: the protection of the page at %#x: %w", x.start, syscall.Errno(-result))
	}
	return err
}

// uncovered reports whether a page is not protected that is to be.
func (p *pages) uncovered() bool {
	return slices.ContainsFunc(p.list, (*page).open)
}

// Own implements tracee.Protection.
func (p *pages) Own(maps tracee.Mappings) {
	for _, x := range p.list {
		m := maps.Containing(x.start)
		if m == nil || !x.covered {
			continue
		}
		perms := []byte("---" + m.Perms[3:])
		for i, bit := range []int{unix.PROT_READ, unix.PROT_WRITE, unix.PROT_EXEC} {
			if x.own&bit != 0 {
				perms[i] = "rwx"[i]
			}
		}
		m.Perms = string(perms)
	}
}

// Lift implements tracee.Protection.
func (p *pages) Lift(t *tracee.Thread) error {
	if !slices.ContainsFunc(p.list, func(x *page) bool { return x.covered }) {
		return nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	return p.uncoverAll(t, &regs)
}

// Protect implements tracee.Protection. A signal is delivered before the pages are protected: its
// frame may be in one of them, and the kernel's copy of the fault in the thread is the signal's.
func (p *pages) Protect(t *tracee.Thread, signal syscall.Signal) (syscall.Signal, error) {
	if err := p.grow(); err != nil {
		return 0, err
	}
	if p.calling == t || !p.uncovered() {
		return signal, nil
	}
	if p.calling != nil && t.Index == 0 && clones(p.calls[p.calling.TID]) {
		p.calling = nil // it is the new thread, so the kernel has written all that it writes
	}
	if p.calling != nil {
		// Another thread's call may access the pages, and this one's accesses are not seen.
		p.tr.strays++
		return signal, nil
	}
	if signal != 0 {
		if err := ptrace.Step(t.TID, signal); err != nil {
			return 0, err
		}
		stop, err := ptrace.WaitFor(t.TID)
		if err != nil {
			return 0, err
		}
		if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
			return 0, fmt.Errorf("replay: thread %d came to %v at a signal", t.TID, stop)
		}
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return 0, err
	}
	return 0, p.cover(t, &regs)
}

// mainStack is the mapping of the main thread's stack; nil: there is none.
func mainStack(maps tracee.Mappings) *tracee.Mapping {
	i := slices.IndexFunc(maps, func(m tracee.Mapping) bool { return m.Path == "[stack]" })
	if i < 0 {
		return nil
	}
	return &maps[i]
}

// grow makes the pages with watched words exist to which the stack of the main thread has not grown
// yet: the kernel makes them at the first access, which no protection stops. It does the same for a
// read of the tool's (mm/memory.c, __access_remote_vm). The start of the process is compared with
// the recorded one before this.
func (p *pages) grow() error {
	if p.grown || !p.tr.process.Started {
		return nil
	}
	p.grown = true
	maps, err := tracee.ReadMaps(p.tr.process.PID)
	if err != nil {
		return err
	}
	stack := mainStack(maps)
	if stack == nil {
		return nil
	}
	const reach = 1 << 30
	for _, x := range p.list {
		if maps.Containing(x.start) != nil || x.start >= stack.Start || stack.Start-x.start > reach {
			continue
		}
		if !p.tr.process.Memory.Mapped(x.start) {
			p.tr.strays++ // the stack may grow to it all the same
		}
	}
	if maps, err = tracee.ReadMaps(p.tr.process.PID); err != nil {
		return err
	}
	p.refresh(maps)
	return nil
}

// accessError is SEGV_ACCERR: the protection of a page forbids an access.
const accessError = 2

// faultAddress returns si_addr.
func faultAddress(info *ptrace.Siginfo) uint64 {
	const at = 16
	return binary.LittleEndian.Uint64(info[at:])
}

// faulted returns the page whose protection by the tool has caused a signal; nil: none.
func (p *pages) faulted(s *tracee.SignalStop) *page {
	if s.Signal != unix.SIGSEGV || s.Code != accessError {
		return nil
	}
	x := p.pageOf(faultAddress(&s.Info))
	if x == nil || !x.covered && !p.permits(x, s.Regs.Rip) {
		return nil
	}
	return x
}

// permits reports whether the program's own protection of a page permits the access of the
// instruction at a pc. Then a fault there is the tool's, also if the page is not protected any more:
// another thread made the tool lift the protection before the fault was handled.
func (p *pages) permits(x *page, pc uint64) bool {
	const all = unix.PROT_READ | unix.PROT_WRITE
	if !x.mapped || x.own&unix.PROT_READ == 0 {
		return false
	}
	if x.own&all == all {
		return true
	}
	inst := p.tr.process.Instruction(pc)
	return inst != nil && !slices.ContainsFunc(inst.Operands, func(o x86.Operand) bool {
		return o.IsMemory && o.Access != evidence.Read && o.Access != ""
	})
}
