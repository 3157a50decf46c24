package sites

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"diagnose/image/object"
	"diagnose/image/x86"
	"diagnose/replay/patch"
)

// SiteKind says how a system call instruction is changed to call the engine instead of the
// kernel; enum dg_patch of agent/src/record.h.
type SiteKind uint32

// The kinds.
const (
	SiteJump  SiteKind = 1
	SiteTrap  SiteKind = 2
	SiteClone SiteKind = 3
	// SiteCounter is a rdtsc or rdtscp. SiteCounterTrap is one that stays and traps, or bytes
	// that could not be decoded and may be one.
	SiteCounter     SiteKind = 4
	SiteCounterTrap SiteKind = 5
)

// Site is a system call instruction of an object, or one that reads the time-stamp counter,
// with the bytes around it that a jump to the engine may replace. Addresses are link-time
// addresses.
type Site struct {
	// At is the address of the first replaced byte, and Length their number.
	At     uint64
	Length uint32
	Kind   SiteKind
	// Resume is the address after the instruction.
	Resume uint64
	// Before and After are the bytes of whole instructions that are replaced before and after
	// it, and executed elsewhere. They do not depend on their address.
	Before, After uint32
}

// ObjectSites are the system calls of one object.
type ObjectSites struct {
	// Sites are sorted by address. At most one is a SiteCounterTrap.
	Sites []Site
	// Undecided are addresses of the bytes of a system call among bytes that could not be
	// decoded: code or data.
	Undecided []uint64
	// Random is the number of rdrand and rdseed instructions. No recording has their results.
	Random uint64
}

const (
	syscallLen = 2
	jumpLen    = 5

	// sysSigreturn is the number of rt_sigreturn. Its instruction is not patched: unwinders
	// recognise a signal's frame by its bytes (gcc's config/i386/linux-unwind.h), and it never
	// returns.
	sysSigreturn        = 15
	sysClone, sysClone3 = 56, 435
	// lastNumber is larger than the number of any system call.
	lastNumber = 1023

	// sweepLimit is how much code is decoded completely. In a larger object, only the functions
	// that contain the bytes of a system call are decoded.
	sweepLimit = 16 << 20
	// functionLimit is the longest function decoded in a larger object.
	functionLimit = 1 << 20
)

var syscallBytes = []byte{0x0f, 0x05}

// cloners is the function of glibc whose child begins on another stack after the instruction
// (sysdeps/unix/sysv/linux/x86_64/clone.S). Elsewhere, clone is used like fork. clone3 is used
// in only one function, which has no symbol.
var cloners = []string{"clone", "__clone"}

// FindSites finds the system calls in an object's code. If ctx ends first, it fails with its
// error.
func FindSites(ctx context.Context, f *object.File) (ObjectSites, error) {
	var found ObjectSites
	for _, segment := range f.Segments() {
		if segment.Flags&uint32(elf.PF_X) == 0 {
			continue
		}
		code := make([]byte, min(segment.Filesz, uint64(1)<<32))
		if _, err := f.ReadAddr(code, segment.Vaddr); err != nil {
			return ObjectSites{}, fmt.Errorf("code of %s: %w", f.Path(), err)
		}
		if slices.ContainsFunc(soughtBytes, func(b []byte) bool { return bytes.Contains(code, b) }) {
			s := newSiteSearch(f, code, segment.Vaddr)
			err := s.searchSites(ctx, &found)
			s.close()
			if err != nil {
				return ObjectSites{}, err
			}
		}
	}
	slices.SortFunc(found.Sites, func(a, b Site) int { return cmp.Compare(a.At, b.At) })
	found.keepApart()
	return found, nil
}

// siteSearch searches one segment.
type siteSearch struct {
	file *object.File
	code []byte
	base uint64
	// calls are the decoded system calls, each with its neighbours. counters are the reads of
	// the time-stamp counter.
	calls, counters []decodedCall
	random          uint64
	// targets are the starts of functions and the targets of direct jumps and calls.
	targets *addressSet
	// outliner decodes instructions that need no closer look.
	outliner *x86.Outliner
	// table has the entries of .eh_frame_hdr for the functions that begin in this segment.
	table []functionEntry
	// sought are the offsets of the byte patterns of calls, counters and random instructions.
	sought []int
	// gaps: some bytes did not decode. Then there is data among the code, and data may look
	// like a call.
	gaps bool
	// decoded marks candidates that were decoded as instructions, or are inside of one.
	decoded map[uint64]bool
	// functions are the functions with known ends, by their starts; nil until extents is
	// called.
	functions []function
}

// outliners are large, and faster the longer they are used.
var outliners = sync.Pool{New: func() any { return &x86.Outliner{} }}

func newSiteSearch(f *object.File, code []byte, base uint64) siteSearch {
	return siteSearch{file: f, code: code, base: base, targets: newAddressSet(base, uint64(len(code))), outliner: outliners.Get().(*x86.Outliner)}
}

func (s *siteSearch) close() { outliners.Put(s.outliner) }

type decodedCall struct {
	before, after []x86.Inst // nearest first; position independent, no jumps
	inst          x86.Inst
	number        int64 // -1: not known
}

func (s *siteSearch) searchSites(ctx context.Context, found *ObjectSites) error {
	s.decoded = map[uint64]bool{}
	s.sought = occurrences(s.code, append([][]byte{chanceBytes}, soughtBytes...))
	starts := s.findFunctions()
	for _, at := range starts {
		s.targets.addAddress(s.base + uint64(at))
	}
	for _, r := range s.ranges(starts) {
		if err := s.sweep(ctx, r[0], r[1]); err != nil {
			return err
		}
	}
	for _, call := range s.calls {
		if call.number == sysSigreturn {
			continue
		}
		if s.gaps && call.number < 0 {
			delete(s.decoded, call.inst.PC)
			continue
		}
		found.Sites = append(found.Sites, s.site(call))
	}
	for at := 0; ; at++ {
		next := bytes.Index(s.code[at:], syscallBytes)
		if next < 0 {
			break
		}
		at += next
		if address := s.base + uint64(at); !s.decoded[address] {
			found.Undecided = append(found.Undecided, address)
		}
	}
	s.addCounters(found)
	found.Random += s.random
	return nil
}

// ranges returns the parts of the code to decode, as offsets.
func (s *siteSearch) ranges(starts []int) [][2]int {
	if len(s.code) <= sweepLimit {
		return s.sections()
	}
	var ranges [][2]int
	for _, at := range occurrences(s.code, soughtBytes) {
		i, exact := slices.BinarySearch(starts, at)
		if !exact {
			i--
		}
		if i < 0 {
			continue
		}
		end := len(s.code)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		r := [2]int{starts[i], end}
		if end-starts[i] <= functionLimit && (len(ranges) == 0 || ranges[len(ranges)-1] != r) {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// sections returns the executable sections, as there is no code between them. Without a section
// table it returns the whole segment.
func (s *siteSearch) sections() [][2]int {
	var ranges [][2]int
	for _, section := range s.file.Sections() {
		if section.Flags&uint64(elf.SHF_EXECINSTR) == 0 || section.Addr < s.base {
			continue
		}
		start := section.Addr - s.base
		if end := start + section.Size; end > start && end <= uint64(len(s.code)) {
			ranges = append(ranges, [2]int{int(start), int(end)})
		}
	}
	if ranges == nil {
		ranges = [][2]int{{0, len(s.code)}}
	}
	return ranges
}

// findFunctions returns the offsets in .eh_frame_hdr's table (Linux Standard Base
// core specification 5.0, section 10.6.2), sorted.
func (s *siteSearch) findFunctions() []int {
	const tableEncoding = 0x3b // DW_EH_PE_datarel | DW_EH_PE_sdata4
	header, ok := s.file.Program(elf.PT_GNU_EH_FRAME)
	if !ok || header.Filesz < 12 {
		return nil
	}
	b := make([]byte, min(header.Filesz, uint64(64<<20)))
	if _, err := s.file.ReadAddr(b, header.Vaddr); err != nil || b[3] != tableEncoding || b[2] != 0x03 {
		return nil
	}
	count := int(binary.LittleEndian.Uint32(b[8:]))
	address := func(at int) uint64 { return header.Vaddr + uint64(int64(int32(binary.LittleEndian.Uint32(b[at:])))) }
	var starts []int
	for i := 0; i < count && 12+8*i+8 <= len(b); i++ {
		at := address(12+8*i) - s.base
		if at >= uint64(len(s.code)) {
			continue
		}
		starts = append(starts, int(at))
		s.table = append(s.table, functionEntry{int(at), address(16 + 8*i)})
	}
	slices.Sort(starts)
	return starts
}

// window is how many instructions before and after a call are examined.
const window = 3

// sweep visits the instructions of [start, end). It decodes those that contain a sought
// pattern, and their neighbours.
func (s *siteSearch) sweep(ctx context.Context, start, end int) error {
	const stride = 1 << 20 // bytes between checks of ctx: some 10 ms
	var recent []int       // offsets of the previous instructions, newest last; none across a gap
	var open *decodedCall  // the call whose followers are collected
	undecoded := -1        // where bytes last failed to decode
	sought, _ := slices.BinarySearch(s.sought, start)
	for at, look := start, start; at < end; {
		if at >= look {
			look += stride
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		outline, err := s.outliner.Next(s.code[at:end], s.base+uint64(at))
		if err != nil {
			var bad *x86.DecodeError
			s.gaps, undecoded, recent, open = true, at, recent[:0], nil
			at++
			if errors.As(err, &bad) && bad.Len > 1 {
				at += bad.Len - 1
			}
			continue
		}
		if outline.HasTarget {
			s.targets.addAddress(outline.Target)
		}
		for sought < len(s.sought) && s.sought[sought] < at {
			sought++
		}
		contains := sought < len(s.sought) && s.sought[sought] < at+outline.Len
		if contains || open != nil {
			inst := s.decode(at, end)
			if contains {
				s.note(&inst, at, undecoded)
			}
			open = s.lookAtInstruction(&inst, recent, open, end)
		}
		if recent = append(recent, at); len(recent) > window {
			recent = append(recent[:0], recent[1:]...)
		}
		at += outline.Len
	}
	return nil
}

// decode decodes an instruction that is known to decode.
func (s *siteSearch) decode(at, end int) x86.Inst {
	inst, _ := x86.Decode(s.code[at:end], s.base+uint64(at)) // the outliner decoded it before
	return inst
}

// lookAtInstruction handles an instruction that is to call the engine, or one that follows such
// an instruction, which is open. It returns the call that is open afterwards.
func (s *siteSearch) lookAtInstruction(inst *x86.Inst, recent []int, open *decodedCall, end int) *decodedCall {
	if list := s.listFor(inst); list != nil {
		before := make([]x86.Inst, len(recent))
		for i, at := range recent {
			before[i] = s.decode(at, end)
		}
		call := decodedCall{inst: *inst, number: numberBefore(before)}
		for i := len(before) - 1; i >= 0 && patch.Independent(&before[i]); i-- {
			call.before = append(call.before, before[i])
		}
		*list = append(*list, call)
		return &(*list)[len(*list)-1]
	}
	if open == nil || !patch.Independent(inst) || len(open.after) == window {
		return nil
	}
	open.after = append(open.after, *inst)
	return open
}

// listFor returns the list for an instruction that is to call the engine; nil: it is none.
func (s *siteSearch) listFor(inst *x86.Inst) *[]decodedCall {
	switch inst.Op {
	case "syscall":
		if inst.Flow == x86.FlowSyscall {
			return &s.calls
		}
	case "rdtsc", "rdtscp":
		return &s.counters
	case "rdrand", "rdseed":
		s.random++
	}
	return nil
}

// note marks the sought patterns that the instruction contains. After bytes that could not be
// decoded it marks nothing until the decoder has resynchronised, which takes a few
// instructions.
func (s *siteSearch) note(inst *x86.Inst, at, undecoded int) {
	const resynchronised = 64
	if undecoded >= 0 && at-undecoded < resynchronised {
		return
	}
	// The pair of bytes may begin in this instruction's last byte.
	for i := at; i < at+inst.Len && i+1 < len(s.code); i++ {
		if s.code[i] == syscallBytes[0] && slices.ContainsFunc(soughtBytes, func(b []byte) bool { return bytes.HasPrefix(s.code[i:], b) }) {
			s.decoded[s.base+uint64(i)] = true
		}
	}
}

// numberBefore returns the number of the system call, if the instructions before set it.
func numberBefore(recent []x86.Inst) int64 {
	for i := len(recent) - 1; i >= 0; i-- {
		inst := &recent[i]
		if !inst.Writes(x86.RAX) {
			continue
		}
		if inst.Op == "mov" && len(inst.Operands) == 2 && inst.Operands[1].IsImm && inst.Operands[1].Imm <= lastNumber {
			return inst.Operands[1].Imm
		}
		return -1
	}
	return -1
}

// site decides how a call is patched: it moves the fewest instructions, and prefers those
// before the call. Then the program's text after the call is in its place when a debugger
// looks.
func (s *siteSearch) site(call decodedCall) Site {
	own := uint32(call.inst.Len)
	resume := call.inst.PC + uint64(own)
	for _, n := range [][2]int{{1, 0}, {2, 0}, {0, 1}, {3, 0}, {1, 1}, {0, 2}, {2, 1}, {1, 2}, {2, 2}, {0, 3}} {
		if n[0] > len(call.before) || n[1] > len(call.after) {
			continue
		}
		before, after := span(call.before[:n[0]]), span(call.after[:n[1]])
		length := before + own + after
		at := call.inst.PC - uint64(before)
		if length < jumpLen || s.entered(at+1, at+uint64(length)) {
			continue
		}
		site := Site{At: at, Length: length, Kind: SiteJump, Resume: resume, Before: before, After: after}
		if call.number == sysClone3 || call.number == sysClone && s.inCloner(call.inst.PC) {
			site.Kind = SiteClone
		}
		return site
	}
	return Site{At: call.inst.PC, Length: own, Kind: SiteTrap, Resume: resume}
}

func span(insts []x86.Inst) (n uint32) {
	for i := range insts {
		n += uint32(insts[i].Len)
	}
	return n
}

// entered reports whether a jump leads into [from, to).
func (s *siteSearch) entered(from, to uint64) bool {
	for at := from; at < to; at++ {
		if s.targets.has(at) {
			return true
		}
	}
	return false
}

func (s *siteSearch) inCloner(address uint64) bool {
	symbol, ok := s.file.SymbolAt(address)
	return ok && slices.Contains(cloners, symbol.Name)
}
