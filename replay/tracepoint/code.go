package tracepoint

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"diagnose/agent"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// ruleCode is where the code of a rule is. The program's registers are unchanged from start to flags, from there to kept all but rax
// are, and then they are in the thread's own memory.
type ruleCode struct {
	rule               *placedRule
	start, flags, kept uint64
	end                uint64
	// bare is where a thread continues that has no own memory, slow where one does whose formula has no value, moved where the copy of
	// the instruction is.
	bare, slow, moved uint64
	loads             []uint64
}

// mostCode bounds the code of a rule, so that it has room in the arena with the code that stops a thread.
const mostCode = 2600

// listText writes the table of the code whose bytes the tool may have changed, and of the memory that no program has.
func (l *processLog) listText(maps tracee.Mappings) error {
	if l.block == nil {
		return nil
	}
	const lowest = 1 << 16 // vm.mmap_min_addr
	spans := []tracee.Span{{Start: 0, End: lowest}}
	for i := range maps {
		m := &maps[i]
		if m.Perms[2] != 'x' {
			continue
		}
		low := m.Start - MostBytes
		if n := len(spans); spans[n-1].End >= low {
			spans[n-1].End = m.End
		} else {
			spans = append(spans, tracee.Span{Start: low, End: m.End})
		}
	}
	for len(spans) > mostText { // the memory between the last two is read by stops, too
		n := len(spans)
		spans[n-2].End = spans[n-1].End
		spans = spans[:n-1]
	}
	at := blockText
	for _, x := range append(spans, tracee.Span{Start: ^uint64(0), End: ^uint64(0)}) {
		binary.LittleEndian.PutUint64(l.block[at:], x.Start)
		binary.LittleEndian.PutUint64(l.block[at+8:], x.End)
		at += 16
	}
	return nil
}

// shared appends the code that rules share: it jumps to ownReturn, but to ownSlow if the address in %rax is in the table of listText.
func (l *processLog) shared(a *inline.Assembler) error {
	if l.block == nil {
		return nil
	}
	a.Labels, a.Wanted = map[string]int{}, nil
	a.Common = map[string]uint64{"text": a.Here()}
	a.Constant(inline.HardCX, l.base+blockText)
	a.Label("next")
	a.AtBase(inline.OpLoad, inline.HardDX, inline.HardCX, 0)
	a.Write([]byte{0x48, 0x39, 0xc2})                       // cmp %rax, %rdx
	a.ToLabel("other", 0x0f, 0x87)                          // ja: they are in ascending order
	a.AtBase(inline.OpCmp, inline.HardAX, inline.HardCX, 8) // cmp 8(%rcx), %rax
	a.ToLabel("text", 0x0f, 0x82)                           // jb
	a.Write([]byte{0x48, 0x83, 0xc1, 0x10})                 // add $16, %rcx
	a.ToLabel("next", 0xe9)
	for _, end := range []struct {
		name string
		to   int
	}{{"other", ownReturn}, {"text", ownSlow}} {
		a.Label(end.name)
		a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:
		a.Word(uint64(end.to))
	}
	a.Common["ask"] = a.Here()
	l.ask(a)
	l.sharedCode = append(l.sharedCode, tracee.Span{Start: a.Common["text"], End: a.Here()})
	return a.Resolve()
}

// inline appends the code of a rule and the instruction. done is false, and nothing was appended, if the rule is too long.
func (l *processLog) inline(a *inline.Assembler, s *inline.Site, r *placedRule) (done bool, err error) {
	start := a.Len()
	w := &writer{Assembler: a}
	c := &ruleCode{rule: r, start: a.Here()}
	l.begin(w, c)
	if err := l.body(w, r); errors.Is(err, patch.ErrImpossible) || err == nil && a.Len()-start > mostCode {
		a.Truncate(start)
		a.Labels, a.Wanted = map[string]int{}, nil
		return false, nil
	} else if err != nil {
		return false, err
	}
	a.Label("out")
	restore(a)
	a.Label("moved")
	c.moved = a.Here()
	if err := a.Program(&s.Inst); err != nil {
		return false, err
	}
	a.ToLabel("end", 0xe9)
	l.stopping(w, c, s)
	a.Label("end")
	c.end, c.loads = a.Here(), w.loads
	l.codes = append(l.codes, c)
	return true, nil
}

// counter appends incq or decq of a word of the thread's own memory; blockCounter does so for the block at %rcx.
func counter(a *inline.Assembler, decrement bool, offset int) {
	code := byte(0x04)
	if decrement {
		code = 0x0c
	}
	a.Write([]byte{0x65, 0x48, 0xff, code, 0x25})
	a.Word(uint64(offset))
}

func blockCounter(a *inline.Assembler, decrement bool, offset int) {
	code := byte(0x81)
	if decrement {
		code = 0x89
	}
	a.Write([]byte{0x48, 0xff, code})
	a.Word(uint64(offset))
}

func restore(a *inline.Assembler) {
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownFlags)
	a.Write([]byte{0x04, 0x7f, 0x9e}) // add $0x7f, %al, which sets the overflow; sahf
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownAX)
	a.OwnMemory(inline.OpLoad, inline.HardCX, ownCX)
	a.OwnMemory(inline.OpLoad, inline.HardDX, ownDX)
}

const (
	holderOffset   = uint64(unsafe.Offsetof(agent.RawControl{}.Holder))
	consumedOffset = uint64(unsafe.Offsetof(agent.RawControl{}.Consumed))
)

// begin appends the code that saves registers and counts the arrival. Only the thread with the right to run can be counted.
func (l *processLog) begin(w *writer, c *ruleCode) {
	var thread agent.RawRThread
	w.OwnMemory(inline.OpStore, inline.HardAX, ownAX)
	w.OwnMemory(inline.OpStore, inline.HardCX, ownCX)
	w.OwnMemory(inline.OpStore, inline.HardDX, ownDX)
	c.flags = w.Here()
	w.Write([]byte{0x9f, 0x0f, 0x90, 0xc0}) // lahf; seto %al
	w.OwnMemory(inline.OpStore, inline.HardAX, ownFlags)
	c.kept = w.Here()
	w.Constant(inline.HardDX, agent.EngineControl+holderOffset)
	w.Write([]byte{0x8b, 0x02, 0x85, 0xc0}) // mov (%rdx), %eax; test %eax, %eax
	w.ToLabel("uncounted", 0x0f, 0x84)      // jz
	w.Write([]byte{0x48, 0x89, 0xc2})       // mov %rax, %rdx
	w.Write([]byte{0x65, 0x89, 0x14, 0x25}) // mov %edx, %gs:ownIndex
	w.Word(ownIndex)
	w.Write([]byte{0x48, 0xc1, 0xe0, 16}) // shl $16, %rax: DG_THREAD_SLOT
	w.Constant(inline.HardCX, agent.EngineThreads)
	w.Write([]byte{0x48, 0x01, 0xc1, 0x8b, 0x81}) // add %rax, %rcx; mov RealTID(%rcx), %eax
	w.Word(uint64(unsafe.Offsetof(thread.RealTID)))
	w.Write([]byte{0x65, 0x3b, 0x04, 0x25}) // cmp %gs:ownTID, %eax
	w.Word(ownTID)
	w.ToLabel("uncounted", 0x0f, 0x85) // jne
	w.AtBase(inline.OpLoad, inline.HardAX, inline.HardCX, int(unsafe.Offsetof(thread.Ordinal)))
	slot := l.slot(c.rule.number)
	w.OwnMemory(inline.OpCmp, inline.HardAX, slot+slotOrdinal)
	w.ToLabel("same", 0x0f, 0x84) // je
	w.OwnMemory(inline.OpStore, inline.HardAX, slot+slotOrdinal)
	w.Write([]byte{0x65, 0x48, 0xc7, 0x04, 0x25}) // movq $0, %gs:
	w.Word(uint64(slot + slotCount))
	w.Word(0)
	w.Label("same")
	l.count(w, c, false)
	w.ToLabel("slow", 0x48, 0x8d, 0x15) // lea slow(%rip), %rdx
	w.OwnMemory(inline.OpStore, inline.HardDX, ownSlow)
}

// count appends the code that counts the arrival, or takes that back.
func (l *processLog) count(w *writer, c *ruleCode, back bool) {
	slot := l.slot(c.rule.number)
	counter(w.Assembler, back, slot+slotCount)
	if c.rule.asks {
		return // the tool counts it
	}
	counter(w.Assembler, back, slot+slotHits)
	w.Constant(inline.HardCX, l.base)
	blockCounter(w.Assembler, back, blockArrivals)
	if c.rule.Numbered {
		blockCounter(w.Assembler, back, blockNumber)
	}
}

// body appends what follows once the arrival is counted: the question, or the condition and the code that writes the entry.
func (l *processLog) body(w *writer, r *placedRule) error {
	if r.asks {
		return l.asking(w)
	}
	if r.Condition != nil {
		if err := w.compute(r.Condition, 0); err != nil {
			return err
		}
		w.Write([]byte{0x48, 0x85, 0xc0}) // test %rax, %rax
		w.ToLabel("out", 0x0f, 0x84)      // jz
	}
	w.Label("again")
	w.Constant(inline.HardCX, l.base)
	w.AtBase(inline.OpLoad, inline.HardAX, inline.HardCX, blockHead)
	w.AtBase(inline.OpCmp, inline.HardAX, inline.HardCX, blockEnd)
	w.ToLabel("full", 0x0f, 0x83) // jae
	w.OwnMemory(inline.OpStore, inline.HardAX, ownEntry)
	l.header(w, r)
	at := entryValues
	for i := range r.Values {
		if err := w.value(&r.Values[i], at); err != nil {
			return err
		}
		at += r.Values[i].size()
	}
	w.OwnMemory(inline.OpLoad, inline.HardAX, ownEntry)
	w.Write([]byte{0x48, 0x05}) // add $size, %rax
	w.Word(uint64(at))
	w.Constant(inline.HardCX, l.base)
	w.AtBase(inline.OpStore, inline.HardAX, inline.HardCX, blockHead)
	blockCounter(w.Assembler, true, blockLeft)
	w.ToLabel("last", 0x0f, 0x84) // jz
	return nil
}

// header appends the code that writes what each entry has. The entry is at %rax, the block at %rcx.
func (l *processLog) header(w *writer, r *placedRule) {
	w.AtBase(inline.OpLoad, inline.HardDX, inline.HardCX, blockNumber)
	w.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, entryNumber)
	w.Write([]byte{0xc7, 0x80}) // movl $number, entryRule(%rax)
	w.Word(entryRule)
	w.Word(uint64(r.number))
	w.Write([]byte{0x65, 0x8b, 0x14, 0x25}) // mov %gs:ownIndex, %edx
	w.Word(ownIndex)
	w.Write([]byte{0x89, 0x90}) // mov %edx, entryRule+4(%rax)
	w.Word(entryRule + 4)
	for _, x := range []struct{ from, to int }{{l.slot(r.number) + slotOrdinal, entryOrdinal}, {l.slot(r.number) + slotCount, entryCount}} {
		w.OwnMemory(inline.OpLoad, inline.HardDX, x.from)
		w.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, x.to)
	}
	w.Constant(inline.HardDX, agent.EngineControl+consumedOffset)
	w.AtBase(inline.OpLoad, inline.HardDX, inline.HardDX, 0)
	w.AtBase(inline.OpStore, inline.HardDX, inline.HardAX, entryPosition)
}

// value appends the code that writes a value at an offset of the entry.
func (w *writer) value(v *Value, at int) error {
	if v.Address != nil {
		if err := w.address(v.Address, 0); err != nil {
			return err
		}
		w.store(at)
		w.copyBytes(v.Size, at+word)
		return nil
	}
	if err := w.compute(v.Number, 0); err != nil {
		return err
	}
	w.store(at)
	if !v.Text {
		return nil
	}
	null := w.label()
	w.Write([]byte{0x48, 0x85, 0xc0}) // test %rax, %rax
	w.ToLabel(null, 0x0f, 0x84)       // jz
	if err := w.guard(); err != nil {
		return err
	}
	w.copyText(at + word)
	w.Label(null)
	return nil
}

// store appends the code that stores %rax in the entry, which is at %rcx then.
func (w *writer) store(at int) {
	w.OwnMemory(inline.OpLoad, inline.HardCX, ownEntry)
	w.AtBase(inline.OpStore, inline.HardAX, inline.HardCX, at)
}

// stopping appends the code that stops a thread, and continues at the instruction.
func (l *processLog) stopping(w *writer, c *ruleCode, s *inline.Site) {
	a := w.Assembler
	if !c.rule.asks {
		a.Label("full")
		a.Trap(l.full)
		a.ToLabel("again", 0xe9)
		a.Label("last")
		restore(a)
		a.Trap(l.last)
		a.ToLabel("moved", 0xe9)
	}
	c.slow = a.Here()
	a.Label("slow")
	l.count(w, c, true)
	a.Label("uncounted")
	restore(a)
	c.bare = a.Here()
	a.Trap(s)
	a.ToLabel("moved", 0xe9)
}

// codeAt returns the code of a rule that has a pc.
func (l *processLog) codeAt(pc uint64) *ruleCode {
	i := slices.IndexFunc(l.codes, func(c *ruleCode) bool { return pc >= c.start && pc < c.end })
	if i < 0 {
		return nil
	}
	return l.codes[i]
}

// faulted sends a thread that has faulted in the code of a rule to where it stops. false: the fault is another.
func (l *processLog) faulted(regs *ptrace.Registers) bool {
	c := l.codeAt(regs.Rip)
	switch {
	case c == nil:
		return false
	case regs.Rip == c.start:
		regs.Rip = c.bare
	case slices.Contains(c.loads, regs.Rip):
		regs.Rip = c.slow
	default:
		return false
	}
	return true
}

// hide sets the base of %gs to the program's, and returns the thread's own memory; nil: it has none.
func (l *processLog) hide(regs *ptrace.Registers) []byte {
	at := regs.Gs_base - l.base
	if l.block == nil || at < blockOwn || at+uint64(l.ownBytes) > uint64(l.logStart()) {
		return nil
	}
	regs.Gs_base = 0
	return l.block[at : at+uint64(l.ownBytes)]
}

// original changes the registers of a thread in the code of a rule to those before the instruction.
func (l *processLog) original(regs *ptrace.Registers, own []byte) {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(own[at:]) }
	pc := regs.Rip
	if slices.ContainsFunc(l.sharedCode, func(x tracee.Span) bool { return pc >= x.Start && pc < x.End }) {
		pc = number(ownReturn)
	}
	c := l.codeAt(pc)
	if c == nil {
		return
	}
	if pc > c.flags {
		regs.Rax = number(ownAX)
	}
	if pc >= c.kept {
		regs.Rcx, regs.Rdx = number(ownCX), number(ownDX)
		regs.Eflags = regs.Eflags&^patch.ResultFlags | patch.FlagsOf(number(ownFlags)&0xffff)
	}
	regs.Rip = uint64(c.rule.pc)
}
