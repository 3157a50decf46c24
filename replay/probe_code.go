package replay

import (
	"encoding/binary"
	"unsafe"

	"diagnose/agent"
	"diagnose/image/x86"
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
func keep(a *inlineAssembler) {
	a.gs(opStore, hardAX, ownAX)
	a.gs(opStore, hardCX, ownCX)
	a.gs(opStore, hardDX, ownDX)
	a.Write([]byte{0x9f, 0x0f, 0x90, 0xc0}) // lahf; seto %al
	a.gs(opStore, hardAX, ownFlags)
	a.gs(opLoad, hardAX, ownAX)
}

func give(a *inlineAssembler) {
	a.gs(opLoad, hardAX, ownFlags)
	a.Write([]byte{0x04, 0x7f, 0x9e}) // add $0x7f, %al, which sets the overflow; sahf
	registers(a)
}

func registers(a *inlineAssembler) {
	a.gs(opLoad, hardAX, ownAX)
	a.gs(opLoad, hardCX, ownCX)
	a.gs(opLoad, hardDX, ownDX)
}

// inline implements inline.Code.
func (p *probes) inline(a *inlineAssembler, s *inlineSite) error {
	x := p.all[s.number]
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
		a.label("miss" + string(rune('0'+i)))
	}
	give(a)
	if err := a.program(&s.inst); err != nil {
		return err
	}
	a.to("end", 0xe9)
	a.label("hit")
	give(a)
	a.trap(s)
	a.Write([]byte{0x0f, 0x0b}) // not reached
	a.label("end")
	return nil
}

// within jumps to the label hit if an operand may touch a watched word, and to miss if not. At
// hit, %rcx is the operand's address.
func (p *probes) within(a *inlineAssembler, o *x86.Operand, hit, miss string) error {
	m := &o.Memory
	if err := a.address(m); err != nil {
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
			a.to(hit, 0xe9)
			return nil
		}
		if m.Segment == x86.SegNone {
			a.to(miss, 0xe9)
			return nil
		}
	}
	hull := p.hull()
	a.constant(hardAX, hull.Start-size+1)
	a.Write([]byte{0x48, 0x89, 0xca, 0x48, 0x29, 0xc2}) // mov %rcx, %rdx; sub %rax, %rdx
	a.constant(hardAX, hull.Size()+size-1)
	a.Write([]byte{0x48, 0x39, 0xc2}) // cmp %rax, %rdx
	a.to(miss, 0x0f, 0x83)            // jae
	a.Write([]byte{0xb8})             // mov $size, %eax
	a.Word(size)
	return p.ranges(a, hit, miss)
}

// withinRepeats does the same for all that a string instruction with a repeat prefix may touch, in
// either direction. %rcx is the address of its first access.
func (p *probes) withinRepeats(a *inlineAssembler, o *x86.Operand, hit, miss string) {
	hull := p.hull()
	a.gs(opLoad, hardAX, ownCX)
	a.Write([]byte{0x48, 0x69, 0xc0}) // imul $size, %rax
	a.Word(uint64(o.Size))
	a.Write([]byte{0x48, 0x8d, 0x14, 0x01}) // lea (%rcx,%rax), %rdx
	a.Write([]byte{0x48, 0x83, 0xc2, 8})    // add $8, %rdx
	a.Write([]byte{0x48, 0x29, 0xc1})       // sub %rax, %rcx
	a.constant(hardAX, hull.Start)
	a.Write([]byte{0x48, 0x39, 0xc2}) // cmp %rax, %rdx
	a.to(miss, 0x0f, 0x86)            // jbe
	a.constant(hardAX, hull.End)
	a.Write([]byte{0x48, 0x39, 0xc1}) // cmp %rax, %rcx
	a.to(miss, 0x0f, 0x83)            // jae
	a.to(hit, 0xe9)
}

// ranges checks the watched ranges for an access of %eax bytes at %rcx that is within their hull.
func (p *probes) ranges(a *inlineAssembler, hit, miss string) error {
	if len(p.spans) == 1 {
		a.to(hit, 0xe9)
		return nil
	}
	a.to(hit, 0x48, 0x8d, 0x15) // lea hit(%rip), %rdx
	a.gs(opStore, hardDX, ownHit)
	a.to(miss, 0x48, 0x8d, 0x15)
	return a.jump(a.common["ranges"])
}

// logged appends the code for an instruction whose accesses are logged in the process.
func (p *probes) logged(a *inlineAssembler, s *inlineSite, x *probeSite) error {
	o := x.operands[0]
	size := o.Size
	keep(a)
	if err := p.within(a, o, "hit", "miss"); err != nil {
		return err
	}
	a.label("hit")
	a.gs(opStore, hardCX, ownAddr)
	p.copyWords(a, size, ownBefore, "before")
	give(a)
	if err := a.program(&s.inst); err != nil {
		return err
	}
	keep(a)
	a.gs(opLoad, hardCX, ownAddr)
	p.copyWords(a, size, ownAfter, "after")
	a.Write([]byte{0x65, 0xc7, 0x04, 0x25}) // movl number, %gs:ownSite
	a.Word(ownSite)
	a.Word(uint64(s.number))
	a.to("back", 0x48, 0x8d, 0x15) // lea back(%rip), %rdx
	if err := a.jump(a.common["log"]); err != nil {
		return err
	}
	a.label("back")
	give(a)
	a.to("end", 0xe9)
	a.label("miss")
	give(a)
	if err := a.program(&s.inst); err != nil {
		return err
	}
	a.label("end")
	return nil
}

// copyWords copies the words that an access at %rcx touches.
func (p *probes) copyWords(a *inlineAssembler, size, to int, name string) {
	a.Write([]byte{0x48, 0x89, 0xca, 0x48, 0x83, 0xe2, 0xf8}) // mov %rcx, %rdx; and $-8, %rdx
	a.at(opLoad, hardAX, hardDX, 0)
	p.reads(a, to)
	a.gs(opStore, hardAX, to)
	for n := 1; n < mostWords && size > 8*(n-1)+1; n++ {
		// Word n is touched if the offset of the address in the first word plus the size is more
		// than 8n.
		if size <= 8*n {
			a.Write([]byte{0x89, 0xc8, 0x83, 0xe0, 7, 0x83, 0xf8, byte(8*n - size)}) // mov %ecx, %eax; and $7, %eax; cmp
			a.to(name, 0x0f, 0x86)                                                   // jbe
		}
		a.at(opLoad, hardAX, hardDX, 8*n)
		p.reads(a, to)
		a.gs(opStore, hardAX, to+8*n)
	}
	a.label(name)
}

// reads notes that the instruction just appended reads the program's memory before the program's
// own instruction does. That memory may not be mapped.
func (p *probes) reads(a *inlineAssembler, to int) {
	const length = 7
	if to == ownBefore {
		p.loads[a.Here()-length] = readPlace{a.Base, a.labels}
	}
}

// shared implements inline.Code.
func (p *probes) shared(a *inlineAssembler) error {
	a.common = map[string]uint64{}
	for _, x := range []struct {
		name string
		code func(*inlineAssembler)
	}{{"ranges", p.rangesCode}, {"log", p.logCode}} {
		a.labels, a.wanted = map[string]int{}, nil
		a.common[x.name] = a.Here()
		x.code(a)
		if err := a.resolve(); err != nil {
			return err
		}
	}
	return nil
}

// rangesCode takes an access of %eax bytes at %rcx. It jumps to ownHit if the access touches a
// watched range, else to %rdx.
func (p *probes) rangesCode(a *inlineAssembler) {
	a.gs(opStore, hardDX, ownMiss)
	a.gs(opStore, hardBX, ownBX)
	a.constant(hardBX, p.base+blockRanges)
	a.Write([]byte{0x48, 0x01, 0xc8}) // add %rcx, %rax
	a.label("next")
	a.at(opLoad, hardDX, hardBX, 0)
	a.Write([]byte{0x48, 0x39, 0xc2})       // cmp %rax, %rdx
	a.to("none", 0x0f, 0x83)                // jae: they are in ascending order, the last is ^0
	a.at(opCmp, hardCX, hardBX, 8)          // cmp 8(%rbx), %rcx
	a.to("found", 0x0f, 0x82)               // jb
	a.Write([]byte{0x48, 0x83, 0xc3, 0x10}) // add $16, %rbx
	a.to("next", 0xe9)
	for _, end := range []struct {
		name string
		to   int
	}{{"none", ownMiss}, {"found", ownHit}} {
		a.label(end.name)
		a.gs(opLoad, hardBX, ownBX)
		a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:
		a.Word(uint64(end.to))
	}
}

// logCode writes an entry, or stops the thread if there is no room, and then jumps to %rdx.
func (p *probes) logCode(a *inlineAssembler) {
	var thread agent.RawRThread
	var control agent.RawControl
	a.gs(opStore, hardDX, ownReturn)
	a.constant(hardCX, p.base)
	a.Write([]byte{0xb8, 1, 0, 0, 0})             // mov $1, %eax
	a.Write([]byte{0xf0, 0x48, 0x0f, 0xc1, 0x01}) // lock xadd %rax, (%rcx): blockHead
	a.label("again")
	a.at(opCmp, hardAX, hardCX, blockLimit)
	a.to("room", 0x0f, 0x82) // jb
	a.trap(p.full)
	a.to("again", 0xe9)
	a.label("room")
	a.Write([]byte{0x48, 0xff, 0xc0}) // inc %rax
	a.gs(opStore, hardAX, ownEntry)
	a.Write([]byte{0x48, 0xff, 0xc8, 0x25}) // dec %rax; and $(ringEntries-1), %eax
	a.Word(ringEntries - 1)
	a.Write([]byte{0x48, 0xc1, 0xe0, 7})    // shl $7, %rax: entryBytes
	a.Write([]byte{0x48, 0x8d, 0x84, 0x01}) // lea blockRing(%rcx,%rax), %rax
	a.Word(blockRing)
	a.gs(opLoad, hardDX, ownAddr)
	a.at(opStore, hardDX, hardAX, entryAddr)
	for n := range 2 * mostWords { // the words before and after are adjacent in both places
		a.gs(opLoad, hardDX, ownBefore+8*n)
		a.at(opStore, hardDX, hardAX, entryBefore+8*n)
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
	a.gs(opStore, hardBX, ownBX)
	a.Write([]byte{0x31, 0xdb}) // xor %ebx, %ebx
	a.constant(hardDX, agent.EngineControl+uint64(unsafe.Offsetof(control.Holder)))
	a.at(opLoad, hardCX, hardDX, int(unsafe.Offsetof(control.Consumed)-unsafe.Offsetof(control.Holder)))
	a.at(opStore, hardCX, hardAX, entryConsumed)
	a.at(opStore, hardBX, hardAX, entryWho)
	a.at(opStore, hardBX, hardAX, entryReal)
	a.at(opStore, hardBX, hardAX, entryOrdinal)
	a.Write([]byte{0x8b, 0x12, 0x85, 0xd2}) // mov (%rdx), %edx; test %edx, %edx
	a.to("no owner", 0x0f, 0x84)            // jz
	a.Write([]byte{0x48, 0xc1, 0xe2, 16})   // shl $16, %rdx: DG_THREAD_SLOT
	a.constant(hardCX, agent.EngineThreads)
	a.Write([]byte{0x48, 0x01, 0xca}) // add %rcx, %rdx
	for _, f := range []struct{ from, to int }{{int(unsafe.Offsetof(thread.RealTID)), entryReal},
		{int(unsafe.Offsetof(thread.Ordinal)), entryOrdinal}, {int(unsafe.Offsetof(thread.Index)), entryWho}} {
		a.at(opLoad, hardCX, hardDX, f.from)
		a.at(opStore, hardCX, hardAX, f.to)
	}
	if len(p.tr.c.request.watching.Locks) > 0 {
		p.locksCode(a)
	}
	a.label("no owner")
	a.at(opStore, hardBX, hardAX, entryHeld)
	a.gs(opLoad, hardBX, ownBX)
	a.gs(opLoad, hardDX, ownEntry)
	a.at(opStore, hardDX, hardAX, entryDone)
	a.constant(hardCX, p.base)
	a.at(opCmp, hardDX, hardCX, blockStop) // cmp blockStop(%rcx), %rdx
	a.to("on", 0x0f, 0x82)                 // jb
	a.trap(p.each)
	a.label("on")
	a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:ownReturn
	a.Word(ownReturn)
}

// locksCode computes the bits of the locks that the thread holds in %rbx. The thread's id is in
// the upper half of %rcx.
func (p *probes) locksCode(a *inlineAssembler) {
	a.gs(opStore, hardSI, ownSI)
	a.gs(opStore, hardDI, ownDI)
	a.Write([]byte{0x48, 0xc1, 0xe9, 32, 0xbe, 1, 0, 0, 0}) // shr $32, %rcx; mov $1, %esi
	a.constant(hardDI, p.base+blockLocks)
	a.label("lock")
	a.at(opLoad, hardDX, hardDI, 0)
	a.Write([]byte{0x48, 0x85, 0xd2}) // test %rdx, %rdx
	a.to("locks", 0x0f, 0x84)         // jz
	p.lockLoads[a.Here()] = true
	a.Write([]byte{0x8b, 0x12, 0x85, 0xd2}) // mov (%rdx), %edx; test %edx, %edx
	a.to("free", 0x0f, 0x84)
	a.Write([]byte{0x83, 0x7f, 8, 0}) // cmpl $0, 8(%rdi): a word without an owner
	a.to("held", 0x0f, 0x84)
	a.Write([]byte{0x39, 0xca}) // cmp %ecx, %edx
	a.to("free", 0x0f, 0x85)    // jne
	a.label("held")
	a.Write([]byte{0x48, 0x09, 0xf3}) // or %rsi, %rbx
	a.label("free")
	a.Write([]byte{0x48, 0x01, 0xf6, 0x48, 0x83, 0xc7, 0x10}) // add %rsi, %rsi; add $16, %rdi
	a.to("lock", 0xe9)
	a.label("locks")
	a.gs(opLoad, hardSI, ownSI)
	a.gs(opLoad, hardDI, ownDI)
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
	for i, l := range p.tr.c.request.watching.Locks {
		binary.LittleEndian.PutUint64(b[blockLocks+16*i:], uint64(l.Addr))
		if l.Owner {
			b[blockLocks+16*i+8] = 1
		}
	}
	binary.LittleEndian.PutUint64(b[blockLimit:], ringEntries)
	binary.LittleEndian.PutUint64(b[blockStop:], p.stopAt())
	return b
}
