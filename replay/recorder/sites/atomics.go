package sites

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"diagnose/image/object"
	"diagnose/image/x86"
	"diagnose/replay/patch"
)

// AtomicWindow is code with atomic instructions that a jump can replace, at its link-time address.
type AtomicWindow struct {
	patch.Window
	// Ordered says of each moved instruction whether it is atomic, or a plain access that is ordered with them.
	Ordered []bool
	// Learned are the addresses of learned sites in it.
	Learned []uint64
}

// Atomics are the atomic instructions of an object: locked ones, and exchanges with memory; and
// the plain accesses that are ordered with them.
type Atomics struct {
	// Windows are in ascending order and do not overlap.
	Windows []AtomicWindow
	// Patchable counts the atomic instructions in Windows.
	Patchable int
	// Left are the addresses of those that no jump can replace.
	Left []uint64
	// Plain counts the plain accesses in Windows, PlainLeft those that no jump can replace.
	Plain, PlainLeft int
	// Learned counts the learned sites in Windows; LearnedLeft are the addresses of those that no jump can replace.
	Learned     int
	LearnedLeft []uint64
	// Fences counts instructions that lock the thread's own stack without changing it. They order
	// no word that threads share.
	Fences int
	// Unsure counts what looks like an atomic instruction among bytes that are not all code.
	Unsure int
}

// Total is the number of atomic instructions that may access shared memory.
func (a *Atomics) Total() int { return a.Patchable + len(a.Left) }

// FindAtomics finds the atomic instructions in an object's code, and the code around each that a
// jump can replace. learned are link-time addresses of accesses that are ordered, too; those where no such
// access is are left out. If ctx ends first, it fails with its error.
func FindAtomics(ctx context.Context, f *object.File, learned []uint64) (Atomics, error) {
	var found Atomics
	system, err := CachedSites(f)
	if err != nil {
		return found, err
	}
	for _, segment := range f.Segments() {
		if segment.Flags&uint32(elf.PF_X) == 0 {
			continue
		}
		code := make([]byte, min(segment.Filesz, uint64(1)<<32))
		if _, err := f.ReadAddr(code, segment.Vaddr); err != nil {
			return found, fmt.Errorf("code of %s: %w", f.Path(), err)
		}
		s := atomicSearch{siteSearch: newSiteSearch(f, code, segment.Vaddr), system: system.Sites, learned: learned,
			starts: newAddressSet(segment.Vaddr, uint64(len(code)))}
		err := s.search(ctx, &found)
		s.close()
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// neighbours is how many instructions before and after an atomic one are examined. A jump takes
// the place of five at most.
const neighbours = 5

// atomicSearch searches one segment.
type atomicSearch struct {
	siteSearch
	// system are the patches of system calls, which share no byte with the windows.
	system []Site
	// atomics are offsets, in ascending order, each with those of the instructions before it.
	atomics []atomicAt
	learned []uint64
	// starts are the addresses of instructions.
	starts *addressSet
	// entries are the addresses near atomics to which code may lead.
	entries []uint64
}

// atomicAt is the offset of an atomic instruction, or of a plain access.
type atomicAt struct {
	at     int
	before []int // of the nearest instructions before it, in ascending order
	why    atomicKind
}

// atomicKind says why an instruction is ordered.
type atomicKind uint8

const (
	isAtomic  atomicKind = iota // by itself
	isPlain                     // for an atomic or learned one nearby
	isLearned                   // a replay diverged without its order
)

func (s *atomicSearch) search(ctx context.Context, found *Atomics) error {
	starts := s.findFunctions()
	for _, at := range starts {
		s.targets.addAddress(s.base + uint64(at))
	}
	for _, r := range s.sections() {
		if err := s.sweep(ctx, r[0], r[1], found); err != nil {
			return err
		}
	}
	if s.gaps {
		s.atomics = slices.DeleteFunc(s.atomics, func(a atomicAt) bool {
			begins, sure := s.instructionAt(a.at)
			if !begins || !sure {
				found.Unsure++
			}
			return !begins || !sure
		})
	}
	s.addLearned()
	if !s.gaps {
		s.addPlain()
	}
	if err := s.searchEntries(); err != nil {
		return err
	}
	s.choose(found)
	return nil
}

// sweep visits the instructions of [start, end).
func (s *atomicSearch) sweep(ctx context.Context, start, end int, found *Atomics) error {
	const stride = 1 << 20 // bytes between checks of ctx: some 10 ms
	var recent []int
	for at, look := start, start; at < end; {
		if at >= look {
			look += stride
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		outline, err := s.outliner.Next(s.code[at:end], s.base+uint64(at))
		if err != nil {
			s.gaps, recent = true, recent[:0]
			at++
			var bad *x86.DecodeError
			if errors.As(err, &bad) && bad.Len > 1 {
				at += bad.Len - 1
			}
			continue
		}
		s.starts.addAddress(s.base + uint64(at))
		if outline.HasTarget {
			s.targets.addAddress(outline.Target)
		}
		if mayBeAtomic(s.code[at : at+outline.Len]) {
			switch inst := s.decode(at, end); {
			case isFence(&inst):
				found.Fences++
			case IsAtomic(&inst):
				s.atomics = append(s.atomics, atomicAt{at: at, before: slices.Clone(recent)})
			}
		}
		if recent = append(recent, at); len(recent) > neighbours {
			recent = append(recent[:0], recent[1:]...)
		}
		at += outline.Len
	}
	return nil
}

// searchEntries looks near the atomics for addresses to which code may lead without a direct jump:
// those that code takes, and those in tables.
func (s *atomicSearch) searchEntries() error {
	pcs := make([]uint64, len(s.atomics))
	for i, a := range s.atomics {
		pcs[i] = s.base + uint64(a.at)
	}
	search := patch.NewEntrySearch(pcs...)
	search.LongJumps(s.code, s.base)
	isCode := s.starts.has
	if s.gaps {
		isCode = func(a uint64) bool { return a-s.base < uint64(len(s.code)) }
	}
	for _, r := range s.dataRanges() {
		data := make([]byte, min(r.End-r.Start, uint64(1)<<32))
		if _, err := s.file.ReadAddr(data, r.Start); err != nil {
			return fmt.Errorf("data of %s: %w", s.file.Path(), err)
		}
		search.Tables(data, r.Start, isCode)
	}
	s.entries = search.Sorted()
	if !s.gaps { // bytes that only look like a jump, or like a table, mostly lead into the middle of an instruction
		s.entries = slices.DeleteFunc(s.entries, func(at uint64) bool { return !s.starts.has(at) })
	}
	return nil
}

// unwinding are the sections without addresses that code jumps to. Their numbers look like tables.
var unwinding = []string{".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".dynsym", ".dynstr", ".gnu.hash", ".gnu.version", ".gnu.version_r"}

// dataRanges are the parts of the file that may have addresses of code, or tables of offsets. Without a section table these
// are the whole segments.
func (s *atomicSearch) dataRanges() (list []Addresses) {
	for _, x := range s.file.Sections() {
		loaded := x.Flags&uint64(elf.SHF_ALLOC) != 0 && x.Type != uint32(elf.SHT_NOBITS)
		if loaded && x.Flags&uint64(elf.SHF_EXECINSTR) == 0 && !slices.Contains(unwinding, x.Name) {
			list = append(list, Addresses{x.Addr, x.Addr + x.Size})
		}
	}
	if list != nil {
		return list
	}
	for _, x := range s.file.Segments() {
		if x.Flags&uint32(elf.PF_X) == 0 {
			list = append(list, Addresses{x.Vaddr, x.Vaddr + x.Filesz})
		}
	}
	return list
}

// choose finds the windows, in ascending order.
func (s *atomicSearch) choose(found *Atomics) {
	end := s.base // of the last window
	for _, a := range s.atomics {
		pc := s.base + uint64(a.at)
		if n := len(found.Windows); n > 0 && found.Windows[n-1].includes(a, pc) {
			found.count(a, pc, true)
			continue
		}
		w := s.window(a, end)
		found.count(a, pc, w != nil)
		if w == nil {
			continue
		}
		found.Windows = append(found.Windows, AtomicWindow{Window: *w, Ordered: make([]bool, len(w.Moved))})
		found.Windows[len(found.Windows)-1].includes(a, pc)
		end = w.End
	}
}

func (a *Atomics) count(x atomicAt, pc uint64, patchable bool) {
	switch {
	case x.why == isPlain && patchable:
		a.Plain++
	case x.why == isPlain:
		a.PlainLeft++
	case x.why == isLearned && patchable:
		a.Learned++
	case x.why == isLearned:
		a.LearnedLeft = append(a.LearnedLeft, pc)
	case patchable:
		a.Patchable++
	default:
		a.Left = append(a.Left, pc)
	}
}

// includes reports whether a window moves the instruction at pc, and notes that it is ordered.
func (w *AtomicWindow) includes(a atomicAt, pc uint64) bool {
	i := slices.IndexFunc(w.Moved, func(inst x86.Inst) bool { return inst.PC == pc })
	if i >= 0 {
		w.Ordered[i] = true
		if a.why == isLearned {
			w.Learned = append(w.Learned, pc)
		}
	}
	return i >= 0
}

// window chooses the window of one instruction, from low on; nil: there is none. Of the code that
// it moves each instruction must have its displacement found.
func (s *atomicSearch) window(a atomicAt, low uint64) *patch.Window {
	pc := s.base + uint64(a.at)
	before := make([]x86.Inst, len(a.before))
	for i, at := range a.before {
		before[i] = s.decode(at, len(s.code))
	}
	low, high := s.borders(pc, low)
	if low > pc {
		return nil // it is moved with a system call
	}
	w := patch.ChooseWindow(before, s.after(a.at), low, high)
	if w == nil {
		return nil
	}
	var code patch.Code
	for i := range w.Moved {
		if code.Move(&w.Moved[i]) != nil {
			return nil
		}
	}
	return w
}

func (s *atomicSearch) after(at int) (list []x86.Inst) {
	for len(list) <= neighbours && at < len(s.code) {
		inst, err := x86.Decode(s.code[at:], s.base+uint64(at))
		if err != nil {
			break
		}
		list = append(list, inst)
		at += inst.Len
	}
	return list
}

// borders returns the nearest addresses around pc to which code leads, or which the patch of a
// system call has; low is the lowest possible one.
func (s *atomicSearch) borders(pc, low uint64) (from, to uint64) {
	i, exact := slices.BinarySearch(s.entries, pc)
	switch {
	case exact:
		low = pc
	case i > 0:
		low = max(low, s.entries[i-1])
	}
	if exact {
		i++
	}
	to = ^uint64(0)
	if i < len(s.entries) {
		to = s.entries[i]
	}
	const reach = 128 // more than a window has on one side
	for at := max(low, pc-min(pc, reach)); at <= pc; at++ {
		if s.targets.has(at) {
			low = at
		}
	}
	for at := pc + 1; at < min(to, pc+reach); at++ {
		if s.targets.has(at) {
			to = at
		}
	}
	i, _ = slices.BinarySearchFunc(s.system, pc, func(x Site, pc uint64) int {
		if x.At > pc {
			return 1
		}
		return -1
	})
	if i > 0 {
		low = max(low, s.system[i-1].At+uint64(s.system[i-1].Length))
	}
	if i < len(s.system) {
		to = min(to, s.system[i].At)
	}
	return low, to
}

const lockPrefix = 0xf0

// mayBeAtomic reports whether the bytes of an instruction may be those of an atomic one: it is
// much faster than decoding.
func mayBeAtomic(code []byte) bool {
	for i, c := range code {
		switch {
		case c == lockPrefix:
			return true
		case c == 0x66 || c == 0x67 || c == 0xf2 || c == 0xf3 || c == 0x2e || c == 0x36 || c == 0x3e || c == 0x26 || c == 0x64 || c == 0x65,
			c >= 0x40 && c <= 0x4f:
			continue
		}
		const registers = 0xc0 // ModRM: mod 3
		return (c == 0x86 || c == 0x87) && i+1 < len(code) && code[i+1] < registers
	}
	return false
}

// IsAtomic reports whether an instruction reads and writes memory as one step: it is locked, or
// an exchange with memory, which is so in any case (SDM volume 3, section 8.1.2.1).
func IsAtomic(inst *x86.Inst) bool {
	return mayBeAtomic(inst.Bytes) && AtomicOperand(inst) != nil
}

// AtomicOperand returns the operand of an atomic instruction that is in memory; nil: it has none.
func AtomicOperand(inst *x86.Inst) *x86.Memory {
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsMemory && !o.Implicit && o.Access != "" {
			return &o.Memory
		}
	}
	return nil
}

// isFence reports whether an instruction is a fence in the form that compilers prefer to mfence: it
// adds nothing to a word of the stack.
func isFence(inst *x86.Inst) bool {
	if inst.Op != "or" && inst.Op != "add" || len(inst.Operands) < 2 || !inst.Operands[1].IsImm || inst.Operands[1].Imm != 0 {
		return false
	}
	m := AtomicOperand(inst)
	return m != nil && m.Base == x86.RSP && m.Index == x86.RegNone
}
