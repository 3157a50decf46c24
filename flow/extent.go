package flow

import (
	"math/bits"
	"strings"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Extent is the memory that operand k of step n accesses. Under a mask of AVX-512 it goes from the first element that the
// mask selects to the last one, and its size is 0 where the mask selects none (SDM volume 1, 15.6). Of an access of no fixed
// size it is one byte. known is false if the address, or which elements are selected, is not known.
func (t *Trace) Extent(n, k int) (l Location, known bool) {
	addr, known := t.Address(n, k)
	if !known {
		return Location{}, false
	}
	inst := t.instructions[t.steps.at(n).pc].inst
	o := &inst.Operands[k]
	l = Memory(addr, max(o.Size, 1))
	if !partial(inst, o) {
		return l, true
	}
	selected, known := t.selected(n, o)
	if !known {
		return Location{}, false
	}
	return Memory(addr+evidence.Addr(selected.first()), selected.end()-selected.first()), true
}

// partial reports whether an instruction may leave out elements of a memory operand.
func partial(inst *x86.Inst, o *x86.Operand) bool {
	return o.IsMemory && o.Conditional && !inst.Repeats() && !strings.HasPrefix(inst.Op, "cmpxchg")
}

// elements are those of a vector in memory that a mask selects.
type elements struct {
	mask uint64 // a bit for each element
	size int    // of an element, in bytes
}

// first and end are the offsets of the first selected byte, and after the last one.
func (e elements) first() int {
	if e.mask == 0 {
		return 0
	}
	return bits.TrailingZeros64(e.mask) * e.size
}

func (e elements) end() int { return bits.Len64(e.mask) * e.size }

// run is the first run of selected bytes among the size bytes at off; none has no size.
func (e elements) run(off, size int) (first, length int) {
	for first = off; first < off+size && e.mask>>(first/e.size)&1 == 0; {
		first++
	}
	for length = 0; first+length < off+size && e.mask>>((first+length)/e.size)&1 != 0; {
		length++
	}
	return first, length
}

// maskedMoves are the moves whose elements a mask selects, by the size of an element in bytes.
var maskedMoves = map[string]int{
	"vmovdqu8": 1, "vmovdqu16": 2, "vmovdqu32": 4, "vmovdqa32": 4, "vmovups": 4, "vmovaps": 4,
	"vmovdqu64": 8, "vmovdqa64": 8, "vmovupd": 8, "vmovapd": 8,
}

// selected are the elements that the mask of step n selects of memory operand o: of a plain move, if the mask was moved from a
// general register.
func (t *Trace) selected(n int, o *x86.Operand) (e elements, known bool) {
	s := t.steps.at(n)
	inst := t.instructions[s.pc].inst
	if e.size = maskedMoves[inst.Op]; e.size == 0 {
		return e, false
	}
	mask := inst.Operands[len(inst.Operands)-1]
	if !strings.HasPrefix(mask.RegName, "k") {
		return e, false
	}
	count := o.Size / e.size
	register := Location{Thread: s.thread, Space: transfer.Mask, Num: mask.RegName[1] - '0', Size: (count + 7) / 8}
	d := t.Define(register, n)
	if d.Kind != Copied || d.Part != register || d.From[0].Space != transfer.General {
		return e, false
	}
	e.mask = t.steps.at(d.At).general[d.From[0].Num] >> (8 * d.From[0].Off) & (^uint64(0) >> (64 - count))
	return e, true
}

// underMask says how a store under a mask made the bytes of d, which begin off bytes into memory operand o; made is false if the mask
// selects none of them.
func (t *Trace) underMask(d Definition, n int, o *x86.Operand, off int) (out Definition, made bool) {
	e, known := t.selected(n, o)
	if !known {
		return d, true
	}
	first, length := e.run(off, d.Part.Size)
	if length == 0 {
		return d, false
	}
	out = Definition{At: n, Part: d.Part.slice(first-off, length)}
	for _, l := range d.From {
		if l.Space == transfer.Vector {
			out.Kind, out.From = Copied, []Location{l.slice(first, length)}
		}
	}
	return out, true
}
