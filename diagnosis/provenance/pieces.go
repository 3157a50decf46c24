package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// pieces handles a word that several steps made. If they copied it byte by byte from one place, the way continues there.
func (f *follower) pieces(l flow.Location, n int, last flow.Definition) (next flow.Location, at int, more bool) {
	stores := f.storesOf(l, n)
	for _, d := range stores {
		links := slices.Clone(f.way.Links)
		f.link(Stored, d.At, d.Part)
		if f.broken(d) {
			return l, 0, false
		}
		f.way.Links = links
	}
	f.link(Stored, last.At, l)
	if at, ok := f.updated(l, n); ok {
		return l, at + 1, true
	}
	var whole byteSource
	for i := range l.Size {
		part, ok := f.copied(flow.Memory(l.Addr+evidence.Addr(i), 1), n)
		switch {
		case !ok, i > 0 && !part.follows(&whole, i):
			f.end(Pieces, f.firstPart(stores, l, last.At))
			f.overran(l, f.start)
			return l, 0, false
		case i == 0:
			whole = part
		}
	}
	if next, at = whole.l, whole.before; f.pieced == 0 {
		f.pieced = last.At
	}
	next.Size = l.Size
	return next, at, true
}

// storesOf are the definitions of the bytes that a word has before step n, one for each step, the first in time first: what a loop wrote past
// the end of an array began there.
func (f *numbers) storesOf(l flow.Location, n int) (list []flow.Definition) {
	for i := range l.Size {
		d := f.define(flow.Memory(l.Addr+evidence.Addr(i), 1), n)
		if d.At >= 0 && !slices.ContainsFunc(list, func(o flow.Definition) bool { return o.At == d.At }) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b flow.Definition) int { return a.At - b.At })
	return list
}

// firstPart is the first of the steps that stored a part of a word; last if none is known. Of those that stored all of it, others have
// overwritten a part.
func (f *numbers) firstPart(stores []flow.Definition, l flow.Location, last int) int {
	for _, d := range stores {
		if f.trace.Define(l, d.At+1).Part != l {
			return d.At
		}
	}
	return last
}

// updated is the step that stored all of a word, if later stores only put some of its bytes back with bits changed, as those of bit
// fields do.
func (f *numbers) updated(l flow.Location, n int) (stored int, ok bool) {
	const mostUpdates = 16
	for range mostUpdates {
		d := f.define(l, n)
		if d.At < 0 || d.Part == l {
			return d.At, d.At >= 0
		}
		if !f.madeOf(d.Part, d.Part.Addr, n, maxUpdate) {
			return 0, false
		}
		n = d.At
	}
	return 0, false
}

// maxUpdate bounds the instructions between a load and the store of the value that was made of it.
const maxUpdate = 8

// madeOf reports whether the value that bytes have before step n was made of the memory at an address.
func (f *numbers) madeOf(l flow.Location, addr evidence.Addr, n, depth int) bool {
	d := f.define(l, n)
	if d.At < 0 || depth == 0 || f.trace.Step(d.At).Library {
		return false
	}
	return slices.ContainsFunc(values(d), func(from flow.Location) bool {
		if from.Space == transfer.Memory {
			return addr >= from.Addr && addr < from.Addr+evidence.Addr(from.Size)
		}
		return f.madeOf(from, addr, d.At, depth-1)
	})
}

// byteSource is what a byte was copied from, as it is before a step. Of a register, made is the step that gave it its value.
type byteSource struct {
	l            flow.Location
	before, made int
}

// follows reports whether a byte is the one i bytes after another one, of memory or of one value of a register.
func (o *byteSource) follows(first *byteSource, i int) bool {
	if o.l.Space == transfer.Memory {
		return first.l.Space == transfer.Memory && o.l.Addr == first.l.Addr+evidence.Addr(i)
	}
	next := first.l
	next.Off += i
	return o.l == next && o.made == first.made
}

// copied is the byte of memory or of a register that a byte in memory was last copied from. Code that takes a number apart shifts its
// bytes on the way.
func (f *numbers) copied(l flow.Location, n int) (o byteSource, ok bool) {
	for range 16 {
		d := f.define(l, n)
		switch d.Kind {
		case flow.Copied:
			l, n = d.From[0], d.At
		case flow.Computed:
			from, shifted := f.shifted(d)
			if !shifted {
				return byteSource{l, n, d.At}, l.Space == transfer.General
			}
			l, n = from, d.At
		default:
			return o, false
		}
		if l.Space == transfer.Memory {
			return byteSource{l: l, before: n}, true
		}
	}
	return o, false
}

// shifted is the byte of a register that a right shift by whole bytes made another byte of.
func (f *numbers) shifted(d flow.Definition) (from flow.Location, ok bool) {
	step := f.trace.Step(d.At)
	o := step.Inst.Operands
	if op := step.Inst.Op; op != "shr" && op != "sar" || len(o) < 2 || d.Part.Space != transfer.General {
		return from, false
	}
	var count uint64
	switch {
	case o[1].IsImm:
		count = uint64(o[1].Imm)
	case o[1].Reg == x86.RCX:
		count = f.trace.Register(d.At, x86.RCX)
	default:
		return from, false
	}
	bits := uint64(8 * o[0].Size)
	if count &= max(bits, 32) - 1; count%8 != 0 || 8*uint64(d.Part.Off)+count >= bits { // SDM, SAL/SAR/SHL/SHR: the count is masked
		return from, false
	}
	from = d.Part
	from.Off += int(count / 8)
	return from, true
}
