package image

import (
	"diagnose/evidence"
)

// regions are the purposes of a process's mappings without a file.
type regions struct {
	process  *Process
	mappings Mappings // the process's
	stacks   []threadStack
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

// findRegions finds the stacks of a process's threads, and its heap.
func findRegions(p *Process) *regions {
	r := &regions{process: p, mappings: p.Mappings}
	for i := range p.Threads {
		r.stacks = append(r.stacks, r.stacksOf(&p.Threads[i])...)
	}
	r.heap = r.findHeap()
	return r
}

// stacksOf finds the stack that a thread's stack pointer is on, and the stack
// that the thread was created with if that is another: glibc keeps a thread's
// control block at the top of its stack, the kernel names the first thread's.
func (r *regions) stacksOf(t *Thread) []threadStack {
	var list []threadStack
	first := t.Ref.TID == r.process.Program.PID
	if i := r.stackMapping(t.Registers.SP()); i >= 0 {
		list = append(list, r.newStack(t, i, t.Registers.SP(), first))
	}
	own := -1
	if first {
		own = r.mainStack()
	} else {
		own = r.mappings.index(t.Registers.FSBase)
	}
	if own < 0 || len(list) > 0 && list[0].mapping == own {
		return list
	}
	if s := r.newStack(t, own, 0, first); s.whole && (s.main || r.mappings.guardBelow(own) >= 0) {
		list = append(list, s)
	}
	return list
}

// stackMapping returns the index of the writable mapping that a stack pointer
// is on or has just left, -1 if there is none.
func (r *regions) stackMapping(sp evidence.Addr) int {
	const most = 16 // one or two guards are in between
	first := r.mappings.endingPast(sp)
	for i := first; sp != 0 && i < min(len(r.mappings), first+most) && r.mappings[i].Start < sp+nearStack; i++ {
		if r.mappings[i].Writable() {
			return i
		}
	}
	return -1
}

func (r *regions) newStack(t *Thread, mapping int, sp evidence.Addr, first bool) threadStack {
	m := &r.mappings[mapping]
	s := threadStack{thread: t, mapping: mapping, sp: sp, main: first && m.Path == "[stack]"}
	s.whole = s.main || m.Path == "" && m.Writable() && r.process.ModuleAt(m.Start) == nil &&
		(!first && m.Contains(t.Registers.FSBase) || r.mappings.guardBelow(mapping) >= 0)
	return s
}

func (r *regions) mainStack() int {
	for _, kind := range []uint64{auxRandom, auxExecFn} {
		if i := r.mappings.index(evidence.Addr(r.process.Auxv[kind])); i >= 0 && r.mappings[i].Path == "[stack]" {
			return i
		}
	}
	return -1
}

// stackAt returns the thread whose stack holds addr: of several in one
// mapping the one with the nearest stack pointer below.
func (r *regions) stackAt(addr evidence.Addr) (threadStack, bool) {
	var best threadStack
	found := false
	for _, s := range r.stacks {
		if !r.mappings[s.mapping].Contains(addr) {
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
func (r *regions) findHeap() addrRange {
	for i := range r.mappings {
		if r.mappings[i].Path == "[heap]" {
			return r.heapFrom(i)
		}
	}
	if s, ok := r.process.SymbolNamed("__curbrk"); ok {
		if brk, err := Uint64(r.process, s.Addr); err == nil && brk != 0 {
			if i := r.mappings.index(evidence.Addr(brk - 1)); i >= 0 && r.heapLike(i) {
				return r.heapFrom(i)
			}
			return addrRange{}
		}
	}
	if r.process.Exe == nil {
		return addrRange{}
	}
	const randomGap = 32 << 20
	i := r.mappings.endingPast(r.process.Exe.End - 1)
	if i+1 < len(r.mappings) && r.mappings[i].End <= r.process.Exe.End {
		i++
	}
	if i < len(r.mappings) && r.heapLike(i) && r.mappings[i].Start < r.process.Exe.End+randomGap {
		return r.heapFrom(i)
	}
	return addrRange{}
}

func (r *regions) heapLike(i int) bool {
	m := &r.mappings[i]
	return m.Writable() && (m.Path == "" || m.Path == "[heap]") && r.process.ModuleAt(m.Start) == nil
}

// heapFrom joins the pieces that mprotect and madvise have cut the heap into.
func (r *regions) heapFrom(i int) addrRange {
	heap := addrRange{r.mappings[i].Start, r.mappings[i].End}
	for j := i - 1; j >= 0 && r.mappings[j].End == heap.start && r.heapLike(j); j-- {
		heap.start = r.mappings[j].Start
	}
	for j := i + 1; j < len(r.mappings) && r.mappings[j].Start == heap.end && r.mappings[j].Path == "[heap]"; j++ {
		heap.end = r.mappings[j].End
	}
	return heap
}

// OfStart reports whether an address is in the texts that the kernel gave the program when it started it, its arguments and its environment:
// they lie between AT_RANDOM's bytes and AT_EXECFN (Linux, fs/binfmt_elf.c, create_elf_tables).
func (p *Process) OfStart(addr evidence.Addr) bool {
	first, last := p.Auxv[auxRandom], p.Auxv[auxExecFn]
	return first != 0 && uint64(addr) > first && uint64(addr) < last
}
