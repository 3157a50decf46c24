package flow

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Kind says how bytes got their value.
type Kind uint8

// The kinds of definition.
const (
	// Unknown: the trace does not have it. A function of the recording library may have changed the bytes, or an
	// instruction of which only the encoding is known.
	Unknown Kind = iota
	// Copied: byte for byte from From[0].
	Copied
	// Computed of From.
	Computed
	// Constant: the instruction has the value in itself.
	Constant
	// Input: a system call wrote it.
	Input
	// Result: it is what a function of the recording library returned.
	Result
	// Allocated: the heap handed the memory out, and nothing was stored there since; Freed: it was
	// freed, and nothing was stored there since.
	Allocated
	Freed
	// Before: nothing in the trace defines it; it is of before.
	Before
)

var kindNames = [...]string{"unknown", "copied", "computed", "constant", "input", "result", "allocated", "freed", "before"}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Definition is the step that gave bytes their value.
type Definition struct {
	Kind Kind
	// At is the step; -1 for Before.
	At int
	// Part is which of the bytes it defines, at least one. Others may have been defined by other steps.
	Part Location
	// From are the bytes of which it made them, as they were before the step.
	From []Location
	// Call is the system call or the function of the library.
	Call string
}

// Define finds the last step before step n that gave bytes of l their value. Those of another thread
// count for memory.
func (t *Trace) Define(l Location, n int) Definition {
	switch l.Space {
	case transfer.Memory:
		return t.defineMemory(l, n)
	case transfer.General, transfer.Vector, transfer.Mask, transfer.Flag, transfer.Float:
		return t.defineRegister(l, n)
	}
	return Definition{At: -1, Part: l}
}

// defineRegister goes back through the steps of the thread.
func (t *Trace) defineRegister(l Location, n int) Definition {
	at := int32(n)
	if t.steps.at(n).thread == l.Thread {
		at = t.steps.at(n).previous
	} else {
		for at--; at >= 0 && t.steps.at(int(at)).thread != l.Thread; {
			at--
		}
	}
	for ; ; at-- {
		if at = t.passBlocks(l.Thread, at, writesOf(l.Space, l.Num)); at < 0 {
			break
		}
		s := t.steps.at(int(at))
		if s.library {
			if d, changed := t.throughLibrary(l, int(at)); changed {
				return d
			}
			continue
		}
		i := t.instructions[s.pc]
		if i.inst != nil && i.writes&writesOf(l.Space, l.Num) == 0 {
			continue
		}
		if d, ok := t.made(l, int(at)); ok {
			return d
		}
	}
	return Definition{Kind: Before, At: -1, Part: l}
}

// throughLibrary says what a step in the library did to a register. A register that has its old value was not
// changed, or saved and restored; vectors are only kept by system calls.
func (t *Trace) throughLibrary(l Location, n int) (d Definition, changed bool) {
	s := t.steps.at(n)
	if s.called == notExecuted {
		return d, false
	}
	d = Definition{At: n, Part: l, Call: t.calls[s.called]}
	if l.Space != transfer.General {
		return d, s.called != 0
	}
	if s.previous >= 0 {
		before := t.steps.at(int(s.previous))
		if before.called == notExecuted && before.general[l.Num] == s.general[l.Num] {
			return d, false // it was stopped before an instruction, and called nothing
		}
		if i := t.instructions[before.pc]; !before.library && before.general[l.Num] == s.general[l.Num] && (i.inst == nil || !i.inst.Writes(x86.Reg(l.Num)) || i.inst.Flow != x86.FlowNext) && x86.Reg(l.Num) != x86.RAX {
			return d, false
		}
	}
	if x86.Reg(l.Num) == x86.RAX || x86.Reg(l.Num) == x86.RDX {
		d.Kind = Result
	}
	return d, true
}

// defineMemory looks at the steps that wrote to the words of l.
func (t *Trace) defineMemory(l Location, n int) Definition {
	best := Definition{Kind: Before, At: -1, Part: l}
	for word := uint64(l.Addr) >> 3; word <= (uint64(l.Addr)+uint64(l.Size)-1)>>3; word++ {
		list := t.written[word]
		end, _ := slices.BinarySearch(list, int32(n))
		for k := end - 1; k >= 0 && int(list[k]) > best.At; k-- {
			if d, ok := t.made(l, int(list[k])); ok {
				best = d
				break
			}
		}
	}
	for k := len(t.ranges) - 1; k >= 0; k-- {
		r := &t.ranges[k]
		if int(r.at) >= n {
			continue
		}
		if int(r.at) <= best.At {
			break
		}
		if part, off, ok := l.intersect(Memory(evidence.Addr(r.addr), int(r.size))); ok {
			best = Definition{Kind: r.kind, At: int(r.at), Part: part, Call: r.call}
			if r.kind == Copied {
				best.From = []Location{Memory(evidence.Addr(r.from)+evidence.Addr(off), part.Size)}
			}
			break
		}
	}
	return best
}

// made says how an instruction made bytes of l; ok is false if it did not.
func (t *Trace) made(l Location, n int) (d Definition, ok bool) {
	s := t.steps.at(n)
	i := t.instructions[s.pc]
	if i == nil || i.inst == nil {
		return Definition{At: n, Part: l}, true
	}
	if !t.happens(s, i) {
		return d, false
	}
	for k := range i.transfers {
		x := &i.transfers[k]
		if x.To.Space != l.Space {
			continue
		}
		to, known := t.locate(s, i, x.To)
		part, off, meets := l.intersect(to)
		if !known || !meets {
			continue
		}
		next, made := t.definition(s, i, x, n, part, off), true
		if l.Space == transfer.Memory && partial(i.inst, &i.inst.Operands[x.To.Num]) {
			next, made = t.underMask(next, n, &i.inst.Operands[x.To.Num], off)
		}
		if !made {
			continue
		}
		// A constant that fills the rest of a register says less than what the instruction is for.
		if !ok || d.Kind == Constant && next.Kind != Constant {
			d, ok = next, true
		}
	}
	return d, ok
}

// definition is one transfer, of the part that begins off bytes into its result.
func (t *Trace) definition(s *step, i *instruction, x *transfer.Transfer, n int, part Location, off int) Definition {
	d := Definition{Kind: Computed, At: n, Part: part}
	from := x.From
	if chosen, exact := t.chosen(s, i, x); exact {
		if chosen == nil {
			return Definition{Kind: Constant, At: n, Part: part}
		}
		l, ok := t.locate(s, i, *chosen)
		if !ok {
			return Definition{At: n, Part: part}
		}
		d.Kind, d.From = Copied, []Location{l.slice(off, min(part.Size, l.Size-off))}
		return d
	}
	if len(from) == 0 {
		d.Kind = Constant
	}
	for _, p := range from {
		l, ok := t.locate(s, i, p)
		if !ok {
			return Definition{At: n, Part: part} // a gather, or memory of no known extent
		}
		switch {
		case x.Copy:
			d.Kind = Copied
			l = l.slice(off, part.Size)
		case x.Lane > 0:
			first := off / x.Lane * x.Lane
			l = l.slice(first, min(l.Size-first, (off+part.Size-1)/x.Lane*x.Lane+x.Lane-first))
		}
		if !slices.Contains(d.From, l) {
			d.From = append(d.From, l)
		}
	}
	return d
}

// chosen returns the source that a conditional move took; exact is false for other transfers.
func (t *Trace) chosen(s *step, i *instruction, x *transfer.Transfer) (from *transfer.Place, exact bool) {
	if !strings.HasPrefix(i.inst.Op, "cmov") || len(x.From) < 2 {
		return nil, false
	}
	for k := range x.From {
		if own := x.From[k] == x.To; own != s.holds && x.From[k].Space != transfer.Flag {
			return &x.From[k], true
		}
	}
	return nil, false
}

// happens reports whether a repeated instruction is executed once more.
func (t *Trace) happens(s *step, i *instruction) bool {
	return !i.inst.Repeats() || s.general[x86.RCX] != 0
}

// locate is the storage of a place when an instruction is executed; ok is false if its address or extent is not known.
func (t *Trace) locate(s *step, i *instruction, p transfer.Place) (l Location, ok bool) {
	if p.Space != transfer.Memory {
		return Location{Thread: s.thread, Space: p.Space, Num: p.Num, Off: p.Off, Size: p.Size}, true
	}
	addr, ok := s.address(&i.inst.Operands[p.Num])
	return Memory(addr+evidence.Addr(p.Off), p.Size), ok && p.Size > 0
}

// address is the address of a memory operand.
func (s *step) address(o *x86.Operand) (evidence.Addr, bool) {
	addr, ok := o.Memory.Address(func(r x86.Reg) (uint64, bool) {
		if !r.General() {
			return 0, false
		}
		return s.general[r], true
	})
	switch o.Memory.Segment {
	case x86.SegFS:
		addr += s.fsBase
	case x86.SegGS:
		addr += s.gsBase
	}
	return evidence.Addr(addr), ok
}

// Address is the address of operand k of the instruction of step n.
func (t *Trace) Address(n, k int) (evidence.Addr, bool) {
	s := t.steps.at(n)
	if s.library || t.instructions[s.pc] == nil || t.instructions[s.pc].inst == nil {
		return 0, false
	}
	return s.address(&t.instructions[s.pc].inst.Operands[k])
}
