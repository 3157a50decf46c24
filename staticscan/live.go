package staticscan

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// liveOperands gives the addresses of operands whose registers still had the
// same value when the process stopped: going back from the failing
// instruction as long as there is one way back, and forward from it to the end of
// its block, which is what it would have gone on to access.
func (f *scanned) liveOperands(m image.Memory) map[*x86.Operand]uint64 {
	if f.at < 0 || f.registers == nil {
		return nil
	}
	live := *f.registers
	get := func(r x86.Reg) (uint64, bool) { return live.Get(image.Register(r)) }
	exact := map[*x86.Operand]uint64{}
	note := func(in *x86.Inst) {
		for n := range in.Operands {
			op := &in.Operands[n]
			if !op.IsMemory || op.Access == "" || op.Memory.Segment != x86.SegNone {
				continue
			}
			if addr, ok := op.Memory.Address(get); ok {
				exact[op] = addr
			}
		}
	}
	f.flow.back(f.at, func(i int) bool {
		if i != f.at {
			forgetWritten(&live, &f.flow.insts[i])
		}
		note(&f.flow.insts[i])
		return true
	})
	f.forward(m, exact, note, &live)
	return exact
}

// forward goes on from the failing instruction with the registers that it had,
// to the end of its block. Pointers are loaded from the stopped process's
// memory unless the code would have changed it before.
func (f *scanned) forward(m image.Memory, exact map[*x86.Operand]uint64, note func(*x86.Inst), live *image.Registers) {
	*live = *f.registers
	var changed stores
	for i := f.at; i < f.flow.blocks[f.flow.blockOf[f.at]].end; i++ {
		in := &f.flow.insts[i]
		note(in)
		var v uint64
		loads := i > f.at && isPointerLoad(in)
		if loads {
			v, loads = changed.load(m, &in.Operands[1], exact)
		}
		changed.add(in, exact)
		forgetWritten(live, in)
		if loads {
			live.Set(image.Register(in.Operands[0].Reg), v)
		}
	}
}

func isPointerLoad(in *x86.Inst) bool {
	return in.Op == "mov" && len(in.Operands) == 2 && !in.Operands[0].IsMemory && in.Operands[0].Reg.General() &&
		in.Operands[1].IsMemory && in.Operands[1].Size == 8
}

// stores is the memory that instructions change; all of it if any of them
// changes what is not known.
type stores struct {
	ranges [][2]uint64 // first address and size
	all    bool
}

func (s *stores) add(in *x86.Inst, exact map[*x86.Operand]uint64) {
	s.all = s.all || in.Flow == x86.FlowCall || in.Flow == x86.FlowSyscall
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory || !op.Access.Writes() {
			continue
		}
		addr, ok := exact[op]
		s.all = s.all || !ok || op.Size <= 0
		s.ranges = append(s.ranges, [2]uint64{addr, uint64(op.Size)})
	}
}

// load reads the pointer that an operand would have found.
func (s *stores) load(m image.Memory, op *x86.Operand, exact map[*x86.Operand]uint64) (uint64, bool) {
	addr, ok := exact[op]
	if !ok || s.all {
		return 0, false
	}
	for _, r := range s.ranges {
		if addr-r[0] < r[1] || r[0]-addr < uint64(op.Size) {
			return 0, false
		}
	}
	v, err := image.Uint64(m, evidence.Addr(addr))
	return v, err == nil
}

func forgetWritten(live *image.Registers, in *x86.Inst) {
	for r := x86.RAX; r <= x86.R15; r++ {
		if defines(in, r) {
			live.Forget(image.Register(r))
		}
	}
}

// back visits instructions from i backwards while each has one predecessor.
func (g *graph) back(i int, visit func(i int) bool) {
	seen := map[int]bool{}
	for {
		b := g.blockOf[i]
		for ; i >= g.blocks[b].first; i-- {
			if !visit(i) {
				return
			}
		}
		if seen[b] || b == g.entry || len(g.blocks[b].prev) != 1 {
			return
		}
		seen[b] = true
		i = g.blocks[g.blocks[b].prev[0]].end - 1
		if seen[g.blocks[b].prev[0]] {
			return
		}
	}
}

// unshared reports whether an address that the code used is no memory that
// something else could have written: nothing is mapped there, or read-only.
func (w *processView) unshared(addr evidence.Addr) bool {
	p := w.process.MappingAt(addr)
	return p == nil || !p.Writable() && !strings.HasPrefix(p.Perms, "??")
}
