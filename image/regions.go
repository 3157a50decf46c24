package image

import (
	"strings"
	"sync"

	"diagnose/evidence"
)

// regionCache holds the purposes of mappings without a file, found on first
// use.
type regionCache struct {
	once   sync.Once
	stacks []threadStack
	// heap is the brk heap; empty when it was not found.
	heap addrRange
}

// threadStack is the mapping that holds a thread's stack.
type threadStack struct {
	thread *Thread
	// mapping indexes Process.Mappings.
	mapping int
	main    bool
	// whole says that the whole mapping is the stack, as glibc and the kernel
	// make them. Otherwise only the part above sp is known to be the stack.
	whole bool
	// sp is the stack pointer, 0 when it is not on this stack but, for example,
	// on an alternate signal stack.
	sp evidence.Addr
}

const (
	// nearStack is how far below a mapping a stack pointer may be for the
	// mapping still to count as its stack.
	nearStack = 1 << 20
	// redZone is what a function may use below the stack pointer (psABI 3.2.2).
	redZone = 128
)

func (p *Process) memoryRegions() *regionCache {
	p.regions.once.Do(func() {
		for i := range p.Threads {
			p.regions.stacks = append(p.regions.stacks, p.stacksOf(&p.Threads[i])...)
		}
		p.regions.heap = p.findHeap()
	})
	return &p.regions
}

// stacksOf finds the stack that a thread's stack pointer is on, and the stack
// that the thread was created with if that is another: glibc keeps a thread's
// control block at the top of its stack, the kernel names the first thread's.
func (p *Process) stacksOf(t *Thread) []threadStack {
	var list []threadStack
	first := t.Ref.TID == p.Program.PID
	if i := p.stackMapping(t.Registers.SP()); i >= 0 {
		list = append(list, p.newStack(t, i, t.Registers.SP(), first))
	}
	own := -1
	if first {
		own = p.mainStack()
	} else {
		own = p.mappingIndex(t.Registers.FSBase)
	}
	if own < 0 || len(list) > 0 && list[0].mapping == own {
		return list
	}
	if s := p.newStack(t, own, 0, first); s.whole && (s.main || p.guardBelow(own) >= 0) {
		list = append(list, s)
	}
	return list
}

// stackMapping returns the index of the writable mapping that a stack pointer
// is on or has just left, -1 if there is none.
func (p *Process) stackMapping(sp evidence.Addr) int {
	const most = 16 // one or two guards are in between
	first := p.mappingBehind(sp)
	for i := first; sp != 0 && i < min(len(p.Mappings), first+most) && p.Mappings[i].Start < sp+nearStack; i++ {
		if p.Mappings[i].Writable() {
			return i
		}
	}
	return -1
}

func (p *Process) newStack(t *Thread, mapping int, sp evidence.Addr, first bool) threadStack {
	m := &p.Mappings[mapping]
	s := threadStack{thread: t, mapping: mapping, sp: sp, main: first && m.Path == "[stack]"}
	s.whole = s.main || m.Path == "" && m.Writable() && p.ModuleAt(m.Start) == nil &&
		(!first && m.Contains(t.Registers.FSBase) || p.guardBelow(mapping) >= 0)
	return s
}

func (p *Process) mainStack() int {
	for _, kind := range []uint64{auxRandom, auxExecFn} {
		if i := p.mappingIndex(evidence.Addr(p.Auxv[kind])); i >= 0 && p.Mappings[i].Path == "[stack]" {
			return i
		}
	}
	return -1
}

func (p *Process) mappingIndex(addr evidence.Addr) int {
	if i := p.mappingBehind(addr); i < len(p.Mappings) && p.Mappings[i].Contains(addr) {
		return i
	}
	return -1
}

// guardBelow returns the index of the inaccessible mapping that ends where
// mapping i starts, -1 if there is none.
func (p *Process) guardBelow(i int) int {
	if i == 0 {
		return -1
	}
	g, m := &p.Mappings[i-1], &p.Mappings[i]
	if g.End != m.Start || g.Readable() || g.Writable() || g.Executable() || strings.HasPrefix(g.Perms, "?") || g.file() {
		return -1
	}
	return i - 1
}

// stackAt returns the thread whose stack holds addr: of several in one
// mapping the one with the nearest stack pointer below.
func (p *Process) stackAt(addr evidence.Addr) (threadStack, bool) {
	var best threadStack
	found := false
	for _, s := range p.memoryRegions().stacks {
		if !p.Mappings[s.mapping].Contains(addr) {
			continue
		}
		above := addr+redZone >= s.sp
		if !above && !s.whole {
			continue
		}
		if !found || above && s.sp != 0 && (s.sp > best.sp || addr+redZone < best.sp) {
			best, found = s, true
		}
	}
	return best, found
}

// findHeap finds the brk heap: it ends at the program break, which libc
// keeps in __curbrk; without that it is the anonymous memory that follows
// the executable within the kernel's random gap (arch_randomize_brk).
func (p *Process) findHeap() addrRange {
	for i := range p.Mappings {
		if p.Mappings[i].Path == "[heap]" {
			return p.heapFrom(i)
		}
	}
	if s, ok := p.SymbolNamed("__curbrk"); ok {
		if brk, err := Uint64(p, s.Addr); err == nil && brk != 0 {
			if i := p.mappingIndex(evidence.Addr(brk - 1)); i >= 0 && p.heapLike(i) {
				return p.heapFrom(i)
			}
			return addrRange{}
		}
	}
	if p.Exe == nil {
		return addrRange{}
	}
	const randomGap = 32 << 20
	i := p.mappingBehind(p.Exe.End - 1)
	if i+1 < len(p.Mappings) && p.Mappings[i].End <= p.Exe.End {
		i++
	}
	if i < len(p.Mappings) && p.heapLike(i) && p.Mappings[i].Start < p.Exe.End+randomGap {
		return p.heapFrom(i)
	}
	return addrRange{}
}

func (p *Process) heapLike(i int) bool {
	m := &p.Mappings[i]
	return m.Writable() && (m.Path == "" || m.Path == "[heap]") && p.ModuleAt(m.Start) == nil
}

// heapFrom joins the pieces that mprotect and madvise have cut the heap into.
func (p *Process) heapFrom(i int) addrRange {
	r := addrRange{p.Mappings[i].Start, p.Mappings[i].End}
	for j := i - 1; j >= 0 && p.Mappings[j].End == r.start && p.heapLike(j); j-- {
		r.start = p.Mappings[j].Start
	}
	for j := i + 1; j < len(p.Mappings) && p.Mappings[j].Start == r.end && p.Mappings[j].Path == "[heap]"; j++ {
		r.end = p.Mappings[j].End
	}
	return r
}

const (
	// arenaSize is HEAP_MAX_SIZE of glibc's malloc/arena.c on x86-64, at
	// whose multiples the heaps of arenas other than the main one start.
	arenaSize = 64 << 20
	// chunkMmapped is IS_MMAPPED of malloc/malloc.c.
	chunkMmapped  = 2
	chunkFlags    = 7
	mostBigChunks = 256
)

// inArena reports whether addr is in a heap of a glibc arena, by the heap_info
// at its start: the arena's address, the previous heap, the size in use and the
// size made accessible.
func (p *Process) inArena(addr evidence.Addr) bool {
	base := addr &^ (arenaSize - 1)
	var word [4]uint64
	for i := range word {
		v, err := Uint64(p, base+evidence.Addr(8*i))
		if err != nil {
			return false
		}
		word[i] = v
	}
	arena, previous, size, accessible := evidence.Addr(word[0]), word[1], word[2], word[3]
	m := p.MappingAt(arena)
	return m != nil && m.Writable() && arena%8 == 0 && arena != 0 && previous%arenaSize == 0 &&
		size > 0 && size <= accessible && accessible <= arenaSize && uint64(addr-base) < accessible
}

// inBigChunk returns the block that malloc mapped for itself around addr, found
// by following the chunk headers from the mapping's start. The kernel merges
// neighbouring blocks into one mapping.
func (p *Process) inBigChunk(m *Mapping, addr evidence.Addr) (addrRange, bool) {
	at := m.Start
	for range mostBigChunks {
		size, err := Uint64(p, at+8)
		if err != nil || size&chunkFlags != chunkMmapped {
			return addrRange{}, false
		}
		size &^= chunkFlags
		if size == 0 || size%pageSize != 0 || size > uint64(m.End-at) {
			return addrRange{}, false
		}
		if addr < at+evidence.Addr(size) {
			return addrRange{at, at + evidence.Addr(size)}, true
		}
		at += evidence.Addr(size)
	}
	return addrRange{}, false
}
