package image

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/wording"
)

const (
	// nearNull is below what the kernel lets a process map (vm.mmap_min_addr
	// is 64 KiB on Debian and Ubuntu).
	nearNull = 64 << 10
	// defaultStackLimit is the usual RLIMIT_STACK, which a core does not
	// record; stackGuardGap is the kernel's stack_guard_gap (mm/mmap.c).
	defaultStackLimit = 8 << 20
	largestStackLimit = 1 << 30 // a larger limit says nothing about an address
	stackGuardGap     = 256 * pageSize
)

// placeDescription describes an address of a process.
type placeDescription struct {
	process *Process
	place   evidence.Place
}

func (d *placeDescription) describe() {
	place, addr := &d.place, d.place.Addr
	m := d.process.MappingAt(addr)
	switch {
	case m != nil:
		place.Permissions = m.Perms
		d.mapped(m)
	case addr == 0:
		place.Class, place.Text = evidence.PlaceNearNull, "the null pointer"
	case addr < nearNull:
		place.Class, place.Text = evidence.PlaceNearNull, fmt.Sprintf("at offset %#x from a null pointer", uint64(addr))
	case !addr.Canonical():
		place.Class, place.Text = evidence.PlaceNonCanonical, "non-canonical: bits 47 to 63 differ, so no memory can have it"
	case addr >= 1<<63:
		place.Class, place.Text = evidence.PlaceKernel, "in the kernel's half of the address space"
	default:
		d.unmapped()
	}
	place.Text = evidence.Say(place.Text)
}

// mapped describes an address within a mapping.
func (d *placeDescription) mapped(m *Mapping) {
	place := &d.place
	if m.Path == "[vdso]" || m.Path == "[vvar]" || m.Path == "[vsyscall]" {
		place.Class, place.Text, place.Module = evidence.PlaceVDSO, "in the kernel's "+m.Path, m.Path
		d.nameSymbol()
		return
	}
	if uint64(m.Start) >= canonicalEnd {
		place.Class, place.Text = evidence.PlaceKernel, "in the kernel's half of the address space (vsyscall page)"
		return
	}
	if module := d.process.ModuleAt(place.Addr); module != nil {
		d.inModule(m, module)
		return
	}
	if m.Perms == "---" {
		d.inaccessible()
		return
	}
	if strings.HasPrefix(m.Path, "/dev/zero") { // the kernel's name for it (mm/shmem.c)
		place.Class = evidence.PlaceAnonymous
		place.Text = fmt.Sprintf("in shared anonymous memory (%s) from %v to %v", m.Perms, m.Start, m.End)
		return
	}
	if m.file() {
		offset := m.Offset + uint64(place.Addr-m.Start)
		place.Class, place.Offset = evidence.PlaceMappedFile, offset
		place.Text = fmt.Sprintf("in the mapped file %s at offset %#x", wording.Name(m.Path), offset)
		return
	}
	d.anonymous(m)
}

// inModule describes an address of an object by its section and symbol.
func (d *placeDescription) inModule(mapping *Mapping, m *Module) {
	place := &d.place
	place.Module = m.Path
	what := "data"
	switch {
	case mapping.Perms == "---":
		place.Class, what = evidence.PlaceInaccessible, "an inaccessible part"
	case mapping.Executable():
		place.Class, what = evidence.PlaceCode, "code"
	case mapping.Writable():
		place.Class = evidence.PlaceGlobal
	default:
		place.Class, what = evidence.PlaceReadOnly, "read-only data"
	}
	var section *object.Section
	if m.Object != nil {
		section = m.Object.SectionAt(m.LinkAddr(place.Addr))
	}
	if section == nil {
		place.Text = fmt.Sprintf("in %s of %s (offset %#x)", what, m.name(), m.LinkAddr(place.Addr))
	} else {
		place.Section = wording.Name(section.Name)
		place.Text = fmt.Sprintf("in %s of %s (section %s)", what, m.name(), place.Section)
	}
	d.nameSymbol()
}

// nameSymbol adds the covering symbol to a place's text.
func (d *placeDescription) nameSymbol() {
	place := &d.place
	s, ok := d.process.SymbolAt(place.Addr)
	if !ok || place.Addr < s.Addr {
		return
	}
	place.Symbol, place.Offset = s.Name, uint64(place.Addr-s.Addr)
	kind := "the function"
	switch place.Class {
	case evidence.PlaceGlobal:
		kind = "the global"
	case evidence.PlaceReadOnly:
		kind = "the constant"
	case evidence.PlaceVDSO, evidence.PlaceInaccessible:
		kind = "the symbol"
	}
	where := ""
	switch {
	case place.Section != "":
		where = fmt.Sprintf(" (section %s of %s)", place.Section, s.Module.name())
	default:
		where = " of " + s.Module.name()
	}
	if place.Offset == 0 {
		place.Text = fmt.Sprintf("%s %s%s", kind, s.Name, where)
		return
	}
	place.Text = fmt.Sprintf("%s into %s %s%s", byteCount(place.Offset), kind, s.Name, where)
}

func byteCount(n uint64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1024:
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%#x bytes", n)
}

// inaccessible distinguishes the guard below a stack from other mappings
// without permissions.
func (d *placeDescription) inaccessible() {
	place := &d.place
	i := d.process.Mappings.index(place.Addr)
	for _, s := range d.process.memoryRegions().stacks {
		if s.whole && d.process.Mappings.guardBelow(s.mapping) == i {
			place.Class, place.TID = evidence.PlaceStackGuard, s.thread.Ref.TID
			place.Text = fmt.Sprintf("in the guard below the stack of thread %d, %s below its end",
				s.thread.Ref.Number, byteCount(uint64(d.process.Mappings[s.mapping].Start-place.Addr)))
			return
		}
	}
	place.Class = evidence.PlaceInaccessible
	place.Text = "in memory that is mapped without any permission"
	if base := place.Addr &^ (arenaSize - 1); inArena(d.process.memory, d.process.Mappings, base) {
		place.Text = "in the unused rest of a malloc arena, which has no permission"
	}
}

// anonymous describes memory without a file: stacks, heaps, the rest.
func (d *placeDescription) anonymous(m *Mapping) {
	place := &d.place
	heap := d.process.memoryRegions().heap
	if s, ok := d.process.memoryRegions().stackAt(place.Addr); ok {
		d.onStack(s)
		return
	}
	if m.Path == "[stack]" {
		place.Class, place.Text = evidence.PlaceStack, "on the first thread's stack"
		return
	}
	if place.Addr >= heap.start && place.Addr < heap.end {
		place.Class = evidence.PlaceHeap
		place.Text = fmt.Sprintf("on the heap, %s from its start", byteCount(uint64(place.Addr-heap.start)))
		return
	}
	if m.Writable() {
		if inArena(d.process.memory, d.process.Mappings, place.Addr) {
			place.Class, place.Proof = evidence.PlaceHeap, evidence.Inferred
			place.Text = fmt.Sprintf("on the heap, in the malloc arena at %v", place.Addr&^(arenaSize-1))
			return
		}
		if block, ok := inBigChunk(d.process.memory, m, place.Addr); ok {
			place.Class, place.Proof = evidence.PlaceHeap, evidence.Inferred
			place.Text = fmt.Sprintf("on the heap, in a block of %#x bytes that malloc mapped for itself at %v",
				uint64(block.end-block.start), block.start)
			return
		}
	}
	place.Class = evidence.PlaceAnonymous
	if m.Perms == maybeReadable {
		place.Text = fmt.Sprintf("in anonymous memory that may not be written, and perhaps not read either, from %v to %v", m.Start, m.End)
		return
	}
	if !m.Writable() {
		place.Class = evidence.PlaceReadOnly
		if m.Executable() {
			place.Class = evidence.PlaceCode
		}
	}
	place.Text = fmt.Sprintf("in anonymous memory (%s) from %v to %v", m.Perms, m.Start, m.End)
}

func (d *placeDescription) onStack(s threadStack) {
	place := &d.place
	place.Class, place.TID = evidence.PlaceStack, s.thread.Ref.TID
	if s.sp == 0 {
		place.Text = fmt.Sprintf("on the stack of thread %d, whose stack pointer is elsewhere", s.thread.Ref.Number)
		return
	}
	if place.Addr >= s.sp {
		place.Text = fmt.Sprintf("on the stack of thread %d, %s above its stack pointer", s.thread.Ref.Number,
			byteCount(uint64(place.Addr-s.sp)))
		return
	}
	place.Text = fmt.Sprintf("on the stack of thread %d, %s below its stack pointer", s.thread.Ref.Number,
		byteCount(uint64(s.sp-place.Addr)))
}
