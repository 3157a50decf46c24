package staticscan

import (
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// Where a backward walk ended without finding an instruction.
const (
	atEntry = -1 // at the function's entry
	lost    = -2 // at code that no known edge reaches
)

// maxReaching bounds the definitions told apart; more are as good as none.
const maxReaching = 8

// reaching walks every path backwards from the instruction at pos, which is
// not looked at itself unless a loop leads back to it, and returns the first
// instruction on each path for which stop says so.
func (g *graph) reaching(pos int, stop func(i int) bool) []int {
	found := newFound()
	visited := make([]bool, len(g.blocks))
	var work []int
	scan := func(b, from int) {
		for i := from; i >= g.blocks[b].first; i-- {
			if stop(i) {
				found.add(i)
				return
			}
		}
		if b == g.entry {
			found.add(atEntry)
		} else if len(g.blocks[b].prev) == 0 {
			found.add(lost)
		}
		work = append(work, g.blocks[b].prev...)
	}
	scan(g.blockOf[pos], pos-1)
	for len(work) > 0 && len(found.list) <= maxReaching {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if !visited[b] {
			visited[b] = true
			scan(b, g.blocks[b].end-1)
		}
	}
	return found.list
}

type found struct {
	list []int
	set  map[int]bool
}

func newFound() *found { return &found{set: map[int]bool{}} }

func (f *found) add(i int) {
	if !f.set[i] {
		f.set[i] = true
		f.list = append(f.list, i)
	}
}

// defines reports whether an instruction changes a register; a call changes
// all that its callee may.
func defines(in *x86.Inst, r x86.Reg) bool {
	switch in.Flow {
	case x86.FlowCall:
		for _, c := range callerSaved {
			if c == r {
				return true
			}
		}
		return false
	case x86.FlowSyscall:
		return r == x86.RAX || r == x86.RCX || r == x86.R11
	}
	return in.Writes(r)
}

// survives reports whether the register has, before the instruction at now,
// the value that it had before the one at pos.
func (g *graph) survives(pos, now int, r x86.Reg) bool {
	if pos == now {
		return true
	}
	between := g.reaching(now, func(i int) bool { return i == pos || defines(&g.insts[i], r) })
	for _, i := range between {
		if i >= 0 && (i != pos || defines(&g.insts[i], r)) {
			return false
		}
	}
	return len(between) > 0
}

// instructionOf is the index of the instruction that a frame stands at: for
// a caller the call. -1 when the decoder did not meet it.
func instructionOf(a *analysis, f *unwind.Frame) int {
	if f.Lookup == image.ReturnAddress {
		if i, ok := a.flow.endingAt(uint64(f.PC())); ok {
			return i
		}
		return -1
	}
	if i, ok := a.flow.index(uint64(f.PC())); ok {
		return i
	}
	return -1
}
