package replay

import (
	"slices"

	"diagnose/image/x86"
)

// window is code that a probe's jump replaces: whole instructions, one of them
// at the place's pc. Nothing may come to another of them than the first.
type window struct {
	start, end uint64
	moved      []x86.Inst // what is executed elsewhere
	// hop, if not 0, is the address of padding that has room for the jump, which
	// the window has not: a jump with 8 bits of displacement leads there.
	hop uint64
}

const (
	probeJump = 5
	shortJump = 2
	// hopReach is how far from its start a short jump gets, about.
	hopReach = 120
	// windowLead is decoded before code that is looked at: decoding finds its way
	// within so much, wherever it begins.
	windowLead = 256
	// windowReach is what is looked at on both sides of a pc.
	windowReach = hopReach + probeJump + 15
	sweeps      = 16
)

// findWindow chooses the window for a pc in text, which begins at base.
// entries are where something may lead, from windowReach before pc to as much
// behind it, in ascending order. nil: there is none.
func findWindow(text []byte, base, pc uint64, entries []uint64) *window {
	if pc < base || pc >= base+uint64(len(text)) {
		return nil
	}
	at := int(pc - base)
	before, after := decodeBefore(text, base, at), decodeAfter(text, base, at)
	before = before[len(before)-fallsThrough(before):]
	if len(after) == 0 || !movable(&after[0]) {
		return nil
	}
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
	// From the shortest start on.
	for n := 0; n <= len(before); n++ {
		if n > 0 && (before[len(before)-n].PC < low || !movable(&before[len(before)-n])) {
			break
		}
		if w := windowFrom(append(slices.Clone(before[len(before)-n:]), after...), pc, high, probeJump); w != nil {
			return w
		}
	}
	w := windowFrom(after, pc, high, shortJump)
	if w == nil {
		return nil
	}
	for _, p := range padding(text, base, at) {
		if d := int64(p.start - (w.start + shortJump)); d != int64(int8(d)) {
			continue
		}
		i, _ := slices.BinarySearch(entries, p.start)
		if (i == len(entries) || entries[i] >= p.start+probeJump) && (p.end <= w.start || p.start >= w.end) {
			w.hop = p.start
			return w
		}
	}
	return nil
}

// windowFrom makes a window of the first instructions, with pc's and at least
// so many bytes, that ends at high or before.
func windowFrom(code []x86.Inst, pc, high, least uint64) *window {
	w := &window{start: code[0].PC, end: code[0].PC}
	over := false // what follows is not reached from above
	for i := range code {
		inst := &code[i]
		if w.end > pc && w.end-w.start >= least {
			break
		}
		// Behind a jump only what fills a line up to a jump's target is sure to
		// be nobody's.
		if over && inst.Op != "nop" || !over && !movable(inst) {
			return nil
		}
		w.end += uint64(inst.Len)
		if !over {
			w.moved = append(w.moved, *inst)
		}
		switch inst.Flow {
		case x86.FlowJump, x86.FlowReturn:
			over = true
		case x86.FlowCall: // returns to its end
			high = min(high, w.end)
		}
	}
	if w.end <= pc || w.end-w.start < least || w.end > high {
		return nil
	}
	return w
}

// decodeAfter are the instructions from an offset on.
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

// decodeBefore are the instructions that end at an offset: those that decoding
// finds from whichever byte before it begins.
func decodeBefore(text []byte, base uint64, at int) []x86.Inst {
	votes, arrived := map[int]int{}, 0
	insts := map[int]*x86.Inst{}
	d := newDecoded(text, base, max(at-windowReach-windowLead, 0), at)
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
	lowest := max(at-windowReach, 0)
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

// decoded is what is known of the code between two offsets, for sweeps from several
// bytes, which mostly come to the same instructions.
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

// sweep is the function of that name, so many bytes behind the first offset.
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

// sweep decodes from one offset to another; arrives: an instruction starts at
// the latter.
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

// fallsThrough is how many of the last instructions are surely executed one
// after another. What fills a line ends in front of a function, to which a
// pointer may lead that nothing shows.
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

// padding are places of at least five bytes near an offset that nothing runs.
func padding(text []byte, base uint64, at int) []span {
	var list []span
	near := decodeBefore(text, base, at)
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
		if p.end-p.start >= probeJump {
			list = append(list, p)
		}
	}
	return list
}

func decodeForward(text []byte, base uint64, at int) []x86.Inst {
	list, _ := sweep(text, base, at, min(at+hopReach-probeJump, len(text)))
	return list
}

// movable reports whether an instruction does the same elsewhere.
func movable(inst *x86.Inst) bool {
	switch inst.Flow {
	case x86.FlowNext:
		// It may trap for the recorder, who looks at where.
		return inst.Op != "rdtsc" && inst.Op != "rdtscp"
	case x86.FlowBranch, x86.FlowJump:
		return !inst.HasTarget || branchOpcode(inst) != nil || countedBranch(inst)
	case x86.FlowCall:
		return inst.HasTarget && inst.Bytes[0] == 0xe8 || !inst.HasTarget && indirectCall(inst) >= 0
	case x86.FlowReturn:
		return inst.Op == "ret"
	}
	return false
}

// branchOpcode is the form with 32 bits of displacement; nil: there is none.
func branchOpcode(inst *x86.Inst) []byte {
	switch c := inst.Bytes[0]; {
	case c == 0xe9 || c == 0xeb:
		return []byte{0xe9}
	case c >= 0x70 && c <= 0x7f:
		return []byte{0x0f, c + 0x10}
	case c == 0x0f && inst.Bytes[1]&0xf0 == 0x80:
		return inst.Bytes[:2]
	}
	return nil
}

// countedBranch: loop, loope, loopne and jrcxz have 8 bits of displacement only.
func countedBranch(inst *x86.Inst) bool {
	return inst.Len == 2 && inst.Bytes[0] >= 0xe0 && inst.Bytes[0] <= 0xe3
}

// indirectCall is the index of the opcode of call through a register or
// memory, which a jump has as well; -1: it is something else, or depends on the
// stack pointer, which the call's replacement changes first.
func indirectCall(inst *x86.Inst) int {
	i := 0
	if inst.Bytes[0] == 0x3e { // notrack
		i++
	}
	if i < inst.Len && inst.Bytes[i]&0xf0 == 0x40 {
		i++
	}
	if i+1 >= inst.Len || inst.Bytes[i] != 0xff || inst.Bytes[i+1]>>3&7 != 2 {
		return -1
	}
	for j := range inst.Operands {
		o := &inst.Operands[j]
		if !o.Implicit && (o.Reg == x86.RSP || o.IsMemory && o.Memory.Base == x86.RSP) {
			return -1
		}
	}
	return i
}
