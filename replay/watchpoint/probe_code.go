package watchpoint

import (
	"encoding/binary"
	"unsafe"

	"diagnose/agent"
	"diagnose/image/x86"
	"diagnose/replay/inline"
	"diagnose/replay/tracee"
)

// Offsets in a thread's own memory, to which %gs points while probes are installed.
const (
	ownAX     = 0
	ownCX     = 8
	ownDX     = 16
	ownFlags  = 24 // as lahf and seto give them
	ownAddr   = 32
	ownBefore = 40 // mostWords words
	ownAfter  = ownBefore + 8*mostWords
	ownSite   = ownAfter + 8*mostWords
	ownReturn = ownSite + 8
	ownEntry  = ownReturn + 8
	ownTID    = ownEntry + 8 // the kernel's
	ownBX     = ownTID + 8
	ownSI     = ownBX + 8
	ownDI     = ownSI + 8
	ownHit    = ownDI + 8
	ownMiss   = ownHit + 8
	ownBytes  = 256

	// mostWords bounds the words of 8 bytes that an access may touch to be logged without a stop,
	// mostLogged its bytes.
	mostWords  = 3
	mostLogged = 16
)

// Offsets in an entry of the ring.
const (
	entryAddr     = 0
	entrySP       = 8
	entryConsumed = 16
	entryWho      = 24 // index and recorded id in struct dg_rthread of the thread with the right to run
	entryReal     = 32 // the kernel's id there
	entryOrdinal  = 40
	entryBefore   = 48
	entryAfter    = entryBefore + 8*mostWords
	entrySite     = entryAfter + 8*mostWords // and the kernel's id of the accessing thread
	entryHeld     = entrySite + 8
	entryDone     = entryHeld + 8 // its number + 1, written last
	entryTurns    = entryDone + 8
	entryBytes    = 128
)

// Offsets in the memory that the process shares with the tool.
const (
	blockHead   = 0  // number of the next entry
	blockLimit  = 64 // the number of entries that may be written
	blockStop   = 72 // each entry stops the thread from this number on, counted from 1
	blockRanges = 4096
	blockLocks  = blockRanges + 2*4096
	blockOwn    = blockLocks + 4096
	mostOwn     = agent.RThreads
	ringEntries = 1 << 16
	blockRing   = blockOwn + mostOwn*ownBytes
	blockBytes  = blockRing + ringEntries*entryBytes
)

// keep saves the registers that our code uses. The flags are last because a lea does not change
// them.
func keep(a *inline.Assembler) {
	a.OwnMemory(inline.OpStore, inline.HardAX, ownAX)
	a.OwnMemory(inline.OpStore, inline.HardCX, ownCX)
	a.OwnMemory(inline.OpStore, inline.HardDX, ownDX)
	a.Write([]byte{0x9f, 0x0f, 0x90, 0xc0}) // lahf; seto %al
	a.OwnMemory(inline.OpStore, inline.HardAX, ownFlags)
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownAX)
}

func give(a *inline.Assembler) {
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownFlags)
	a.Write([]byte{0x04, 0x7f, 0x9e}) // add $0x7f, %al, which sets the overflow; sahf
	registers(a)
}

func registers(a *inline.Assembler) {
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownAX)
	a.OwnMemory(inline.OpLoad, inline.HardCX, ownCX)
	a.OwnMemory(inline.OpLoad, inline.HardDX, ownDX)
}

// Inline implements inline.Code.
func (p *probes) Inline(a *inline.Assembler, s *inline.Site) error {
	x := p.all[s.Number]
	if x.fast {
		return p.logged(a, s, x)
	}
	keep(a)
	for i := range x.operands {
		if i > 0 {
			registers(a)
		}
		o := x.operands[i]
		if err := p.within(a, o, "hit", "miss"+string(rune('0'+i))); err != nil {
			return err
		}
		a.Label("miss" + string(rune('0'+i)))
	}
	give(a)
	if err := a.Program(&s.Inst); err != nil {
		return err
	}
	a.ToLabel("end", 0xe9)
	a.Label("hit")
	give(a)
	a.Trap(s)
	a.Write([]byte{0x0f, 0x0b}) // not reached
	a.Label("end")
	return nil
}

// within jumps to the label hit if an operand may touch a watched word, and to miss if not. At
// hit, %rcx is the operand's address.
func (p *probes) within(a *inline.Assembler, o *x86.Operand, hit, miss string) error {
	m := &o.Memory
	if err := a.Address(m); err != nil {
		return err
	}
	if m.Segment == x86.SegFS {
		a.Write([]byte{0x64, 0x48, 0x03, 0x0c, 0x25, 0, 0, 0, 0}) // add %fs:0, %rcx: the thread pointer
	}
	if o.Repeated {
		p.withinRepeats(a, o, hit, miss)
		return nil
	}
	size := uint64(o.Size)
	if m.Base == x86.RIP || m.Absolute {
		if p.touches(m.Target, size) && m.Segment == x86.SegNone {
			a.ToLabel(hit, 0xe9)
			return nil
		}
		if m.Segment == x86.SegNone {
			a.ToLabel(miss, 0xe9)
			return nil
		}
	}
	hull := p.hull()
	a.Constant(inline.HardAX, hull.Start-size+1)
	a.Write([]byte{0x48, 0x89, 0xca, 0x48, 0x29, 0xc2}) // mov %rcx, %rdx; sub %rax, %rdx
	a.Constant(inline.HardAX, hull.Size()+size-1)
	a.Write([]byte{0x48, 0x39, 0xc2}) // cmp %rax, %rdx
	a.ToLabel(miss, 0x0f, 0x83)       // jae
	a.Write([]byte{0xb8})             // mov $size, %eax
	a.Word(size)
	return p.ranges(a, hit, miss)
}

// withinRepeats does the same for all that a string instruction with a repeat prefix may touch, in
// either direction. %rcx is the address of its first access.
func (p *probes) withinRepeats(a *inline.Assembler, o *x86.Operand, hit, miss string) {
	hull := p.hull()
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownCX)
	a.Write([]byte{0x48, 0x69, 0xc0}) // imul $size, %rax
	a.Word(uint64(o.Size))
	a.Write([]byte{0x48, 0x8d, 0x14, 0x01}) // lea (%rcx,%rax), %rdx
	a.Write([]byte{0x48, 0x83, 0xc2, 8})    // add $8, %rdx
	a.Write([]byte{0x48, 0x29, 0xc1})       // sub %rax, %rcx
	a.Constant(inline.HardAX, hull.Start)
	a.Write([]byte{0x48, 0x39, 0xc2}) // cmp %rax, %rdx
	a.ToLabel(miss, 0x0f, 0x86)       // jbe
	a.Constant(inline.HardAX, hull.End)
	a.Write([]byte{0x48, 0x39, 0xc1}) // cmp %rax, %rcx
	a.ToLabel(miss, 0x0f, 0x83)       // jae
	a.ToLabel(hit, 0xe9)
}

// ranges checks the watched ranges for an access of %eax bytes at %rcx that is within their hull.
func (p *probes) ranges(a *inline.Assembler, hit, miss string) error {
	if len(p.spans) == 1 {
		a.ToLabel(hit, 0xe9)
		return nil
	}
	a.ToLabel(hit, 0x48, 0x8d, 0x15) // lea hit(%rip), %rdx
	a.OwnMemory(inline.OpStore, inline.HardDX, ownHit)
	a.ToLabel(miss, 0x48, 0x8d, 0x15)
	return a.Jump(a.Common["ranges"])
}

// logged appends the code for an instruction whose accesses are logged in the process.
func (p *probes) logged(a *inline.Assembler, s *inline.Site, x *probeSite) error {
	o := x.operands[0]
	size := o.Size
	keep(a)
	if err := p.within(a, o, "hit", "miss"); err != nil {
		return err
	}
	a.Label("hit")
	a.OwnMemory(inline.OpStore, inline.HardCX, ownAddr)
	p.copyWords(a, size, ownBefore, "before")
	give(a)
	if err := a.Program(&s.Inst); err != nil {
		return err
	}
	keep(a)
	a.OwnMemory(inline.OpLoad, inline.HardCX, ownAddr)
	p.copyWords(a, size, ownAfter, "after")
	a.Write([]byte{0x65, 0xc7, 0x04, 0x25}) // movl number, %gs:ownSite
	a.Word(ownSite)
	a.Word(uint64(s.Number))
	a.ToLabel("back", 0x48, 0x8d, 0x15) // lea back(%rip), %rdx
	if err := a.Jump(a.Common["log"]); err != nil {
		return err
	}
	a.Label("back")
	give(a)
	a.ToLabel("end", 0xe9)
	a.Label("miss")
	give(a)
	if err := a.Program(&s.Inst); err != nil {
		return err
	}
	a.Label("end")
	return nil
}

// copyWords copies the words that an access at %rcx touches.
func (p *probes) copyWords(a *inline.Assembler, size, to int, name string) {
	a.Write([]byte{0x48, 0x89, 0xca, 0x48, 0x83, 0xe2, 0xf8}) // mov %rcx, %rdx; and $-8, %rdx
	a.AtBase(inline.OpLoad, inline.HardAX, inline.HardDX, 0)
	p.reads(a, to)
	a.OwnMemory(inline.OpStore, inline.HardAX, to)
	for n := 1; n < mostWords && size > 8*(n-1)+1; n++ {
		// Word n is touched if the offset of the address in the first word plus the size is more
		// than 8n.
		if size <= 8*n {
			a.Write([]byte{0x89, 0xc8, 0x83, 0xe0, 7, 0x83, 0xf8, byte(8*n - size)}) // mov %ecx, %eax; and $7, %eax; cmp
			a.ToLabel(name, 0x0f, 0x86)                                              // jbe
		}
		a.AtBase(inline.OpLoad, inline.HardAX, inline.HardDX, 8*n)
		p.reads(a, to)
		a.OwnMemory(inline.OpStore, inline.HardAX, to+8*n)
	}
	a.Label(name)
}

// reads notes that the instruction just appended reads the program's memory before the program's
// own instruction does. That memory may not be mapped.
func (p *probes) reads(a *inline.Assembler, to int) {
	const length = 7
	if to == ownBefore {
		p.loads[a.Here()-length] = readPlace{a.Base, a.Labels}
	}
}

// Shared implements inline.Code.
func (p *probes) Shared(a *inline.Assembler) error {
	a.Common = map[string]uint64{}
	for _, x := range []struct {
		name string
		code func(*inline.Assembler)
	}{{"ranges", p.rangesCode}, {"log", p.logCode}} {
		a.Labels, a.Wanted = map[string]int{}, nil
		a.Common[x.name] = a.Here()
		x.code(a)
		if err := a.Resolve(); err != nil {
			return err
		}
	}
	return nil
}

// rangesCode takes an access of %eax bytes at %rcx. It jumps to ownHit if the access touches a
// watched range, else to %rdx.
func (p *probes) rangesCode(a *inline.Assembler) {
	a.OwnMemory(inline.OpStore, inline.HardDX, ownMiss)
	a.OwnMemory(inline.OpStore, inline.HardBX, ownBX)
	a.Constant(inline.HardBX, p.base+blockRanges)
	a.Write([]byte{0x48, 0x01, 0xc8}) // add %rcx, %rax
	a.Label("next")
	a.AtBase(inline.OpLoad, inline.HardDX, inline.HardBX, 0)
	a.Write([]byte{0x48, 0x39, 0xc2})                       // cmp %rax, %rdx
	a.ToLabel("none", 0x0f, 0x83)                           // jae: they are in ascending order, the last is ^0
	a.AtBase(inline.OpCmp, inline.HardCX, inline.HardBX, 8) // cmp 8(%rbx), %rcx
	a.ToLabel("found", 0x0f, 0x82)                          // jb
	a.Write([]byte{0x48, 0x83, 0xc3, 0x10})                 // add $16, %rbx
	a.ToLabel("next", 0xe9)
	for _, end := range []struct {
		name string
		to   int
	}{{"none", ownMiss}, {"found", ownHit}} {
		a.Label(end.name)
		a.OwnMemory(inline.OpLoad, inline.HardBX, ownBX)
		a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:
		a.Word(uint64(end.to))
	}
}

// logCode writes an entry, or stops the thread if there is no room, and then jumps to %rdx.
func (p *probes) logCode(a *inline.Assembler) {
	var thread agent.RawRThread
	a.OwnMemory(inline.OpStore, inline.HardDX, ownReturn)
	a.Constant(inline.HardCX, p.base)
	a.Write([]byte{0xb8, 1, 0, 0, 0})             // mov $1, %eax
	a.Write([]byte{0xf0, 0x48, 0x0f, 0xc1, 0x01}) // lock xadd %rax, (%rcx): blockHead
	a.Label("again")
	a.AtBase(inline.OpCmp, inline.HardAX, inline.HardCX, blockLimit)
	a.ToLabel("room", 0x0f, 0x82) // jb
	a.Trap(p.full)
	a.ToLabel("again", 0xe9)
	a.Label("room")
	a.Write([]byte{0x48, 0xff, 0xc0}) // inc %rax
	a.OwnMemory(inline.OpStore, inline.HardAX, ownEntry)
	a.Write([]byte{0x48, 0xff, 0xc8, 0x25}) // dec %rax; and $(ringEntries-1), %eax
	a.Word(ringEntries - 1)
	a.Write([]byte{0x48, 0xc1, 0xe0, 7})    // shl $7, %rax: entryBytes
	a.Write([]byte{0x48, 0x8d, 0x84, 0x01}) // lea blockRing(%rcx,%rax), %rax
	a.Word(blockRing)
	a.OwnMemory(inline.OpLoad, inline.HardDX, ownAddr)
	a.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, entryAddr)
	for n := range 2 * mostWords { // the words before and after are adjacent in both places
		a.OwnMemory(inline.OpLoad, inline.HardDX, ownBefore+8*n)
		a.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, entryBefore+8*n)
	}
	a.Write([]byte{0x65, 0x8b, 0x14, 0x25}) // mov %gs:ownSite, %edx
	a.Word(ownSite)
	a.Write([]byte{0x89, 0x90}) // mov %edx, entrySite(%rax)
	a.Word(entrySite)
	a.Write([]byte{0x65, 0x8b, 0x14, 0x25}) // mov %gs:ownTID, %edx
	a.Word(ownTID)
	a.Write([]byte{0x89, 0x90})
	a.Word(entrySite + 4)
	a.Write([]byte{0x48, 0x89, 0xa0}) // mov %rsp, entrySP(%rax)
	a.Word(entrySP)
	a.OwnMemory(inline.OpStore, inline.HardBX, ownBX)
	a.Write([]byte{0x31, 0xdb}) // xor %ebx, %ebx
	a.Constant(inline.HardDX, agent.EngineControl+turnsOffset)
	a.AtBase(inline.OpLoad, inline.HardCX, inline.HardDX, 0)
	a.AtBase(inline.OpStore, inline.HardCX, inline.HardAX, entryTurns)
	a.AtBase(inline.OpLoad, inline.HardCX, inline.HardDX, int(consumedOffset-turnsOffset))
	a.AtBase(inline.OpStore, inline.HardCX, inline.HardAX, entryConsumed)
	a.AtBase(inline.OpStore, inline.HardBX, inline.HardAX, entryWho)
	a.AtBase(inline.OpStore, inline.HardBX, inline.HardAX, entryReal)
	a.AtBase(inline.OpStore, inline.HardBX, inline.HardAX, entryOrdinal)
	a.Write([]byte{0x8b, 0x52, byte(holderOffset - turnsOffset), 0x85, 0xd2}) // mov holder(%rdx), %edx; test %edx, %edx
	a.ToLabel("no owner", 0x0f, 0x84)                                         // jz
	a.Write([]byte{0x48, 0xc1, 0xe2, 16})                                     // shl $16, %rdx: DG_THREAD_SLOT
	a.Constant(inline.HardCX, agent.EngineThreads)
	a.Write([]byte{0x48, 0x01, 0xca}) // add %rcx, %rdx
	for _, f := range []struct{ from, to int }{{int(unsafe.Offsetof(thread.RealTID)), entryReal},
		{int(unsafe.Offsetof(thread.Ordinal)), entryOrdinal}, {int(unsafe.Offsetof(thread.Index)), entryWho}} {
		a.AtBase(inline.OpLoad, inline.HardCX, inline.HardDX, f.from)
		a.AtBase(inline.OpStore, inline.HardCX, inline.HardAX, f.to)
	}
	if len(p.tr.asked.Locks) > 0 {
		p.locksCode(a)
	}
	a.Label("no owner")
	a.AtBase(inline.OpStore, inline.HardBX, inline.HardAX, entryHeld)
	a.OwnMemory(inline.OpLoad, inline.HardBX, ownBX)
	a.OwnMemory(inline.OpLoad, inline.HardDX, ownEntry)
	a.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, entryDone)
	a.Constant(inline.HardCX, p.base)
	a.AtBase(inline.OpCmp, inline.HardDX, inline.HardCX, blockStop) // cmp blockStop(%rcx), %rdx
	a.ToLabel("on", 0x0f, 0x82)                                     // jb
	a.Trap(p.each)
	a.Label("on")
	a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:ownReturn
	a.Word(ownReturn)
}

// locksCode computes the bits of the locks that the thread holds in %rbx. The thread's id is in
// the upper half of %rcx.
func (p *probes) locksCode(a *inline.Assembler) {
	a.OwnMemory(inline.OpStore, inline.HardSI, ownSI)
	a.OwnMemory(inline.OpStore, inline.HardDI, ownDI)
	a.Write([]byte{0x48, 0xc1, 0xe9, 32, 0xbe, 1, 0, 0, 0}) // shr $32, %rcx; mov $1, %esi
	a.Constant(inline.HardDI, p.base+blockLocks)
	a.Label("lock")
	a.AtBase(inline.OpLoad, inline.HardDX, inline.HardDI, 0)
	a.Write([]byte{0x48, 0x85, 0xd2}) // test %rdx, %rdx
	a.ToLabel("locks", 0x0f, 0x84)    // jz
	p.lockLoads[a.Here()] = true
	a.Write([]byte{0x8b, 0x12, 0x85, 0xd2}) // mov (%rdx), %edx; test %edx, %edx
	a.ToLabel("free", 0x0f, 0x84)
	a.Write([]byte{0x83, 0x7f, 8, 0}) // cmpl $0, 8(%rdi): a word without an owner
	a.ToLabel("held", 0x0f, 0x84)
	a.Write([]byte{0x39, 0xca})   // cmp %ecx, %edx
	a.ToLabel("free", 0x0f, 0x85) // jne
	a.Label("held")
	a.Write([]byte{0x48, 0x09, 0xf3}) // or %rsi, %rbx
	a.Label("free")
	a.Write([]byte{0x48, 0x01, 0xf6, 0x48, 0x83, 0xc7, 0x10}) // add %rsi, %rsi; add $16, %rdi
	a.ToLabel("lock", 0xe9)
	a.Label("locks")
	a.OwnMemory(inline.OpLoad, inline.HardSI, ownSI)
	a.OwnMemory(inline.OpLoad, inline.HardDI, ownDI)
}

// tables returns the ranges and locks that the code reads.
func (p *probes) tables() []byte {
	b := make([]byte, blockOwn)
	at := blockRanges
	for _, x := range append(p.spans[:len(p.spans):len(p.spans)], tracee.Span{Start: ^uint64(0), End: ^uint64(0)}) {
		binary.LittleEndian.PutUint64(b[at:], x.Start)
		binary.LittleEndian.PutUint64(b[at+8:], x.End)
		at += 16
	}
	for i, l := range p.tr.asked.Locks {
		binary.LittleEndian.PutUint64(b[blockLocks+16*i:], uint64(l.Addr))
		if l.Owner {
			b[blockLocks+16*i+8] = 1
		}
	}
	binary.LittleEndian.PutUint64(b[blockLimit:], ringEntries)
	binary.LittleEndian.PutUint64(b[blockStop:], p.stopAt())
	return b
}
