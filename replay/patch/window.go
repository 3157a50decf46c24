package patch

import (
	"errors"
	"slices"

	"diagnose/image/x86"
)

// ErrImpossible says that an instruction cannot be replaced by a jump.
var ErrImpossible = errors.New("no probe is possible")

// Window is code that a jump replaces: whole instructions, one of them at the requested pc. Code
// may lead only to the first of them.
type Window struct {
	Start, End uint64
	Moved      []x86.Inst // the instructions, which are executed elsewhere
	// Hop, if not 0, is the address of padding for the jump if the window is too small for it. A
	// jump with 8 bits of displacement leads there.
	Hop uint64
}

const (
	// JumpSize and ShortJumpSize are the bytes of jumps with 32 and 8 bits of
	// displacement.
	JumpSize      = 5
	ShortJumpSize = 2
	// hopReach is about how far a short jump reaches from its start.
	hopReach = 120
	// Lead is how many bytes are decoded before the code of interest. Within that many, decoding
	// from any byte arrives at the true instructions.
	Lead = 256
	// Reach is how many bytes on both sides of a pc are read.
	Reach  = hopReach + JumpSize + 15
	sweeps = 16
)

// FindWindow chooses the window for a pc in text, which begins at base. entries are the addresses
// to which code may lead, from Reach before pc to Reach after it, in ascending order. nil: there
// is none.
func FindWindow(text []byte, base, pc uint64, entries []uint64) *Window {
	if pc < base || pc >= base+uint64(len(text)) {
		return nil
	}
	at := int(pc - base)
	before, after := DecodeBefore(text, base, at), decodeAfter(text, base, at)
	// The nearest entries are the borders.
	low, high := uint64(0), ^uint64(0)
	if i, found := slices.BinarySearch(entries, pc); found {
		low = pc
	} else if i > 0 {
		low = entries[i-1]
	}
	if i, _ := slices.BinarySearch(entries, pc+1); i < len(entries) {
		high = entries[i]
	}
	if w := ChooseWindow(before, after, low, high); w != nil || len(after) == 0 {
		return w
	}
	w := windowFrom(after, pc, high, ShortJumpSize)
	if w == nil {
		return nil
	}
	for _, p := range padding(text, base, at) {
		if d := int64(p.start - (w.Start + ShortJumpSize)); d != int64(int8(d)) {
			continue
		}
		i, _ := slices.BinarySearch(entries, p.start)
		if (i == len(entries) || entries[i] >= p.start+JumpSize) && (p.end <= w.Start || p.start >= w.End) {
			w.Hop = p.start
			return w
		}
	}
	return nil
}

// ChooseWindow chooses a window without a hop for the first instruction of after, which before precedes. No byte of the window
// is below low or from high on; nothing but its first byte is entered from elsewhere if low and high are the nearest addresses
// that are. nil: there is none.
func ChooseWindow(before, after []x86.Inst, low, high uint64) *Window {
	if len(after) == 0 || !Movable(&after[0]) {
		return nil
	}
	before = before[len(before)-fallsThrough(before):]
	// Try the shortest start first.
	for n := 0; n <= len(before); n++ {
		if n > 0 && (before[len(before)-n].PC < low || !Movable(&before[len(before)-n])) {
			break
		}
		if w := windowFrom(append(slices.Clone(before[len(before)-n:]), after...), after[0].PC, high, JumpSize); w != nil {
			return w
		}
	}
	return nil
}

// windowFrom makes a window of the first instructions. It includes pc, has at least the given
// number of bytes, and ends at high or before.
func windowFrom(code []x86.Inst, pc, high, least uint64) *Window {
	w := &Window{Start: code[0].PC, End: code[0].PC}
	over := false // the following code is not reached by falling through
	for i := range code {
		inst := &code[i]
		if w.End > pc && w.End-w.Start >= least {
			break
		}
		// After a jump, only the padding up to the next aligned jump target is certainly not
		// executed.
		if over && inst.Op != "nop" || !over && !Movable(inst) {
			return nil
		}
		w.End += uint64(inst.Len)
		if !over {
			w.Moved = append(w.Moved, *inst)
		}
		switch inst.Flow {
		case x86.FlowJump, x86.FlowReturn:
			over = true
		case x86.FlowCall: // returns to its end
			high = min(high, w.End)
		}
	}
	if w.End <= pc || w.End-w.Start < least || w.End > high {
		return nil
	}
	return w
}

// decodeAfter returns the instructions from an offset on.
func decodeAfter(text []byte, base uint64, at int) []x86.Inst {
	const most = 8
	var list []x86.Inst
	for len(list) < most && at < len(text) {
		inst, err := x86.Decode(text[at:], base+uint64(at))
		if err != nil || at+inst.Len > len(text) {
			break
		}
		list = append(list, inst)
		at += inst.Len
	}
	return list
}

// DecodeBefore returns the instructions that end at an offset: those that decoding finds whatever
// byte before it begins at.
func DecodeBefore(text []byte, base uint64, at int) []x86.Inst {
	votes, arrived := map[int]int{}, 0
	insts := map[int]*x86.Inst{}
	d := newDecoded(text, base, max(at-Reach-Lead, 0), at)
	for i := range sweeps {
		list, arrives := d.sweep(i)
		if !arrives {
			continue
		}
		arrived++
		for _, inst := range list {
			offset := int(inst.PC - base)
			votes[offset]++
			insts[offset] = inst
		}
	}
	var list []x86.Inst
	lowest := max(at-Reach, 0)
	for from := at - 1; from >= lowest; from-- {
		inst, found := insts[from]
		if !found || votes[from] <= arrived/2 {
			continue
		}
		if votes[from] < arrived || from+inst.Len != at {
			break
		}
		list = append(list, *inst)
		at = from
	}
	slices.Reverse(list)
	return list
}

// decoded are the known instructions of the code between two offsets, for sweeps from several
// bytes, which mostly find the same instructions.
type decoded struct {
	text     []byte
	base     uint64
	from, to int
	insts    []*x86.Inst
	tried    []bool
}

func newDecoded(text []byte, base uint64, from, to int) *decoded {
	n := max(to-from, 0)
	return &decoded{text, base, from, to, make([]*x86.Inst, n), make([]bool, n)}
}

// sweep does the same as the function sweep, starting skip bytes after the first offset.
func (d *decoded) sweep(skip int) (list []*x86.Inst, arrives bool) {
	at := d.from + skip
	for at < d.to {
		i := at - d.from
		if !d.tried[i] {
			d.tried[i] = true
			if inst, err := x86.Decode(d.text[at:], d.base+uint64(at)); err == nil {
				d.insts[i] = &inst
			}
		}
		inst := d.insts[i]
		if inst == nil {
			at++
			continue
		}
		list = append(list, inst)
		at += inst.Len
	}
	return list, at == d.to
}

// sweep decodes from one offset to another. arrives: an instruction starts at the latter.
func sweep(text []byte, base uint64, from, to int) (list []x86.Inst, arrives bool) {
	for from < to {
		inst, err := x86.Decode(text[from:], base+uint64(from))
		if err != nil {
			from++
			continue
		}
		list = append(list, inst)
		from += inst.Len
	}
	return list, from == to
}

// fallsThrough returns how many of the last instructions are certainly executed one after another.
// Padding ends before a function, to which a pointer may lead that the code does not show.
func fallsThrough(list []x86.Inst) int {
	for i := len(list) - 1; i >= 0; i-- {
		inst := &list[i]
		if inst.Flow != x86.FlowNext && inst.Flow != x86.FlowBranch || inst.Op == "nop" {
			return len(list) - 1 - i
		}
		if inst.Op == "endbr64" {
			return len(list) - i
		}
	}
	return len(list)
}

// padding returns places near an offset that are never executed and have room for a jump.
func padding(text []byte, base uint64, at int) []span {
	var list []span
	near := DecodeBefore(text, base, at)
	near = append(near, decodeForward(text, base, at)...)
	for i := 1; i < len(near); i++ {
		switch before := &near[i-1]; before.Flow {
		case x86.FlowJump, x86.FlowReturn:
		default:
			continue
		}
		p := span{near[i].PC, near[i].PC}
		for ; i < len(near) && near[i].Op == "nop"; i++ {
			p.end += uint64(near[i].Len)
		}
		if p.end-p.start >= JumpSize {
			list = append(list, p)
		}
	}
	return list
}

func decodeForward(text []byte, base uint64, at int) []x86.Inst {
	list, _ := sweep(text, base, at, min(at+hopReach-JumpSize, len(text)))
	return list
}

// span is a range of addresses, [start, end).
type span struct{ start, end uint64 }

// Overlaps reports whether two windows, with their hops, have bytes in common.
func (w *Window) Overlaps(other *Window) bool {
	spans := func(w *Window) []span {
		return []span{{w.Start, w.End}, {w.Hop, w.Hop + JumpSize}}
	}
	for _, a := range spans(w) {
		for _, b := range spans(other) {
			if a.start != 0 && b.start != 0 && a.start < b.end && b.start < a.end {
				return true
			}
		}
	}
	return false
}

// Hides reports whether an address is unreachable for threads while the window is replaced.
func (w *Window) Hides(pc uint64) bool { return pc > w.Start && pc < w.End }
