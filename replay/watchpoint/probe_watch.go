package watchpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/inline"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// probes is the back end for any number of words. Code at the instructions that are known to
// access them (Watching.Probes) compares the address of each access with the watched ranges. It
// writes an entry, with the words before and after the access, into memory that the process shares
// with this tool. A thread that finds no room stops until there is some, so nothing is lost.
//
// Some accesses cannot be judged by such code and stop by int3: those of runtime libraries, which
// act on behalf of a caller; instructions with several operands, or that repeat or call; and those
// where there is no room for a jump. Then the instruction is stepped over.
//
// Accesses by other instructions are not seen, but a change by them is noticed and counted. The
// accesses of system calls are taken from the log.
type probes struct {
	tr  *Tracing
	in  *inline.Inlined
	all []*probeSite
	// waiting are the instructions whose objects are not loaded yet.
	waiting []uint64
	// full and each stand for an int3: full if the ring has no room, each if every entry is
	// inspected.
	full, each *inline.Site
	loads      map[uint64]readPlace
	lockLoads  map[uint64]bool

	// spans are the watched ranges. sorted lists the watches by address. onlyWrites: reads of all
	// of them are left out.
	spans      []tracee.Span
	sorted     []int
	onlyWrites bool

	block []byte // shared
	base  uint64 // its address in the process
	own   map[int]int
	owns  int
	done  uint64 // entries taken

	calls []kernelAccess
}

// readPlace is where a thread continues if a read of our own code faults: at the label miss.
type readPlace struct {
	base   uint64
	labels map[string]int
}

// probeSite is an instruction that is known to access a watched word.
type probeSite struct {
	inst     x86.Inst
	operands []*x86.Operand // in memory
	fast     bool           // its accesses are logged without a stop
}

// StopsError says that BackendProbe or BackendPages had to stop too often (Watching.MostStops).
type StopsError struct{ Stops uint64 }

func (e *StopsError) Error() string {
	return fmt.Sprintf("replay: the process was stopped more than %d times for accesses", e.Stops)
}

// MostProbed is the number of words that probes can watch.
const MostProbed = 256

func newProbes(tr *Tracing) (*probes, error) {
	p := &probes{tr: tr, loads: map[uint64]readPlace{}, lockLoads: map[uint64]bool{}, own: map[int]int{},
		full: &inline.Site{}, each: &inline.Site{}}
	for _, pc := range tr.asked.Probes {
		p.waiting = append(p.waiting, uint64(pc))
	}
	slices.Sort(p.waiting)
	p.waiting = slices.Compact(p.waiting)
	p.onlyWrites = true
	for i := range tr.watches {
		p.sorted = append(p.sorted, i)
		p.onlyWrites = p.onlyWrites && tr.watches[i].Writes
	}
	slices.SortStableFunc(p.sorted, func(a, b int) int { return cmp.Compare(tr.watches[a].Addr, tr.watches[b].Addr) })
	for _, i := range p.sorted {
		w := &tr.watches[i]
		low, high := uint64(w.Addr), uint64(w.Addr)+uint64(w.Size)
		if n := len(p.spans); n > 0 && p.spans[n-1].End >= low {
			p.spans[n-1].End = max(p.spans[n-1].End, high)
		} else {
			p.spans = append(p.spans, tracee.Span{Start: low, End: high})
		}
	}
	p.in = inline.New(tr.process, tr.stage, p, tr.breakpoints.Exposed)
	tr.breakpoints.UseInlined(p.in)
	return p, p.readLog()
}

func (p *probes) hull() tracee.Span {
	return tracee.Span{Start: p.spans[0].Start, End: p.spans[len(p.spans)-1].End}
}

func (p *probes) touches(addr, size uint64) bool {
	return slices.ContainsFunc(p.spans, func(x tracee.Span) bool { return addr < x.End && addr+size > x.Start })
}

func (p *probes) close() {
	if p.block != nil {
		unix.Munmap(p.block)
	}
}

// install puts probes at the instructions whose objects are loaded. The thread is in a request of
// the engine, so the others wait.
func (p *probes) install(t *tracee.Thread) error {
	if p.block == nil {
		if err := p.share(t); err != nil {
			return err
		}
		for i := range p.tr.watches {
			p.tr.initial(i) // the dynamic linker may have changed it
		}
	}
	maps, err := tracee.ReadMaps(p.tr.process.PID)
	if err != nil {
		return err
	}
	var sites []*inline.Site
	p.waiting = slices.DeleteFunc(p.waiting, func(pc uint64) bool {
		m := maps.Containing(pc)
		if m == nil || m.Perms[2] != 'x' || m.Path == "" {
			return false
		}
		if x := p.site(pc, m); x != nil && p.onlyWrites && !x.writes() {
			return true // its accesses are left out
		} else if x != nil && !p.in.ReplacedByEngine(pc, uint64(x.inst.Len)) {
			sites = append(sites, &inline.Site{Inst: x.inst, Number: len(p.all)})
			p.all = append(p.all, x)
		} else {
			p.tr.Counts.Unprobed = append(p.tr.Counts.Unprobed, evidence.Addr(pc))
		}
		return true
	})
	_, err = p.in.Install(t, sites)
	return err
}

func (x *probeSite) writes() bool {
	return slices.ContainsFunc(x.operands, func(o *x86.Operand) bool { return CodeOf(o.Access)&evidence.CodeWrite != 0 })
}

// site returns how an instruction's accesses are seen; nil: they cannot be.
func (p *probes) site(pc uint64, m *tracee.Mapping) *probeSite {
	inst := p.tr.process.Instruction(pc)
	if inst == nil || inst.Flow == x86.FlowTrap || inst.Flow == x86.FlowSyscall {
		return nil
	}
	x := &probeSite{inst: *inst}
	for i := range inst.Operands {
		o := &x.inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		if o.Size == 0 || o.Memory.Inexact || o.Memory.Addr32 || o.Memory.Index == x86.RegVector || o.Memory.Segment == x86.SegGS {
			return nil
		}
		x.operands = append(x.operands, o)
	}
	if len(x.operands) == 0 {
		return nil
	}
	o := x.operands[0]
	x.fast = len(x.operands) == 1 && inst.Flow == x86.FlowNext && !o.Repeated && o.Size <= mostLogged &&
		(!o.Conditional || inst.Op == "cmpxchg" || o.Access == evidence.Read) && !p.tr.code.runtime(pc)
	return x
}

// share maps the memory for entries in both processes.
func (p *probes) share(t *tracee.Thread) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if regs.Gs_base != 0 {
		return &UnsupportedError{BackendProbe, errors.New("the program uses %gs itself")}
	}
	fd, err := unix.MemfdCreate("diagnose", unix.MFD_CLOEXEC)
	if err != nil {
		return &UnsupportedError{BackendProbe, fmt.Errorf("memfd_create: %w", err)}
	}
	f := os.NewFile(uintptr(fd), "memfd")
	defer f.Close()
	if err := f.Truncate(blockBytes); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if p.block, err = unix.Mmap(fd, 0, blockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("replay: mmap: %w", err)
	}
	if p.base, err = p.tr.process.MapShared(t, regs.Rip, recorded.PathOf(f), blockBytes); err != nil {
		return err
	}
	copy(p.block, p.tables())
	for _, t := range p.tr.process.Threads {
		if t.Stopped {
			if err := p.arm(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// word returns a word of the block that both processes write.
func (p *probes) word(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.block[offset]))
}

// arm gives a stopped thread its own memory.
func (p *probes) arm(t *tracee.Thread) error {
	if p.block == nil {
		return nil // no code is installed yet
	}
	n, known := p.own[t.TID]
	if !known {
		if p.owns == mostOwn {
			return fmt.Errorf("replay: more than %d threads", mostOwn)
		}
		n = p.owns
		p.owns++
		p.own[t.TID] = n
	}
	at := blockOwn + n*ownBytes
	binary.LittleEndian.PutUint32(p.block[at+ownTID:], uint32(t.TID))
	return ptrace.SetGSBase(t.TID, p.base+uint64(at))
}

// finish runs at the end of the replay, with all threads stopped, and restores the program's text
// and its %gs.
func (p *probes) finish() error {
	if p.block == nil {
		return nil
	}
	if err := p.drain(nil); err != nil {
		return err
	}
	control, err := p.tr.process.ReadControl()
	if err != nil {
		return err
	}
	if err := p.called(control.Consumed); err != nil {
		return err
	}
	for i := range p.tr.watches {
		if now, err := p.tr.word(i); err == nil {
			p.notice(i, now)
		}
	}
	for _, pc := range p.waiting {
		p.tr.Counts.Unprobed = append(p.tr.Counts.Unprobed, evidence.Addr(pc))
	}
	if err := p.in.Remove(); err != nil {
		return err
	}
	for tid, t := range p.tr.process.Threads {
		if !t.Stopped {
			continue
		}
		if err := ptrace.SetGSBase(tid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return p.tr.flush()
}
