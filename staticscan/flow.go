package staticscan

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// surroundings is what the flow asks of the process.
type surroundings struct {
	memory image.Memory
	// data reports whether an address lies in an object's writable data, and
	// fixed whether the word there never changes once the program is loaded.
	data, fixed func(uint64) bool
	// same reports whether two addresses belong to one variable.
	same func(a, b uint64) bool
	// threadPointer is fs base; 0 when it is not known.
	threadPointer uint64
	// tlsAddress resolves a call of __tls_get_addr: the call's target and
	// the address of its tls_index argument.
	tlsAddress func(target, index uint64) (uint64, bool)
}

// flow is the data flow over one function.
type flow struct {
	*graph
	around *surroundings
	entry  []state // of each block
	cells  map[value]*cell
}

// maxVisits bounds how often a block is analysed anew; joins come to rest
// far earlier.
const maxVisits = 64

// run finds the state at the entrance of each block. What the given registers had at the
// function's entry is followed too.
func run(g *graph, around *surroundings, follow ...x86.Reg) *flow {
	f := &flow{graph: g, around: around, entry: make([]state, len(g.blocks)), cells: map[value]*cell{}}
	if len(g.blocks) == 0 {
		return f
	}
	f.entry[g.entry].reached = true
	f.entry[g.entry].regs[x86.RSP] = value{kind: stack}
	for _, r := range follow {
		f.entry[g.entry].regs[r] = value{kind: entered, base: uint64(r)}
	}
	f.settle([]int{g.entry})
	f.adopt()
	return f
}

// settle iterates over the blocks in work until no state changes.
func (f *flow) settle(work []int) {
	visits := make([]uint8, len(f.blocks))
	queued := make([]bool, len(f.blocks))
	for _, b := range work {
		queued[b] = true
	}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		queued[b] = false
		if visits[b]++; visits[b] > maxVisits {
			continue
		}
		st := f.entry[b].clone()
		for i := f.blocks[b].first; i < f.blocks[b].end; i++ {
			f.step(&st, &f.insts[i])
		}
		for _, n := range f.blocks[b].next {
			if f.entry[n].join(&st, f.around.same) && !queued[n] {
				queued[n] = true
				work = append(work, n)
			}
		}
	}
}

// adopt gives blocks without a known predecessor the state of where they can
// only be reached from: indirect jumps, or else calls that may throw.
func (f *flow) adopt() {
	if len(f.orphans) == 0 {
		return
	}
	var from state
	for _, fromCalls := range []bool{false, true} {
		f.each(func(i int, st *state) {
			in := &f.insts[i]
			indirect := in.Flow == x86.FlowJump && !in.HasTarget
			if indirect && !fromCalls || in.Flow == x86.FlowCall && fromCalls {
				after := st.clone()
				f.step(&after, in)
				from.join(&after, f.around.same)
			}
		})
		if from.reached {
			break
		}
	}
	if !from.reached {
		from.reached = true
	}
	for _, b := range f.orphans {
		f.entry[b].join(&from, f.around.same)
	}
	f.settle(append([]int(nil), f.orphans...))
}

// before is the state before an instruction; nothing is known of one that is not reached.
func (f *flow) before(i int) state {
	b := f.blockOf[i]
	st := f.entry[b].clone()
	for k := f.blocks[b].first; k < i && st.reached; k++ {
		f.step(&st, &f.insts[k])
	}
	return st
}

// each calls visit with the state before every reached instruction.
func (f *flow) each(visit func(i int, st *state)) {
	for b := range f.blocks {
		if !f.entry[b].reached {
			continue
		}
		st := f.entry[b].clone()
		for i := f.blocks[b].first; i < f.blocks[b].end; i++ {
			visit(i, &st)
			f.step(&st, &f.insts[i])
		}
	}
}

// address is the abstract effective address of a memory operand.
func (f *flow) address(st *state, m *x86.Memory) value {
	var sum value
	switch {
	case m.Base == x86.RIP:
		sum = number(m.Target)
	case m.Absolute:
		sum = number(uint64(m.Disp))
	default:
		sum = number(0)
		if m.Base.General() {
			sum = st.regs[m.Base]
		}
		if m.Index == x86.RegVector {
			sum = add(sum, value{}, f.isData)
		} else if m.Index.General() {
			sum = add(sum, scale(st.regs[m.Index], int64(m.Scale)), f.isData)
		}
		// Last: what is unknown plus a displacement may be an address.
		sum = f.plus(sum, m.Disp)
	}
	switch m.Segment {
	case x86.SegFS:
		if f.around.threadPointer == 0 || sum.kind != absolute {
			return value{}
		}
		sum.off += int64(f.around.threadPointer)
	case x86.SegGS:
		return value{}
	}
	if m.Inexact && sum.kind != unknown {
		sum.varies = true
	}
	return sum
}

func (f *flow) isData(addr uint64) bool { return f.around.data(addr) }

// load is the content of a cell: what the stack slot was given, what a fixed
// word holds, or the pointer that a data word holds in the stopped process.
func (f *flow) load(st *state, at value, size int) value {
	if size != 8 || at.varies {
		return value{}
	}
	if at.kind == stack {
		return st.slot(at)
	}
	addr, ok := at.address()
	if !ok {
		return value{}
	}
	if at.kind == absolute && (f.around.fixed(uint64(addr)) || uint64(addr) == f.around.threadPointer) {
		if n, ok := f.word(addr); ok {
			return number(n)
		}
		return value{}
	}
	return f.follow(at, addr)
}

func (f *flow) word(addr evidence.Addr) (uint64, bool) {
	var b [8]byte
	if _, err := f.around.memory.ReadMemory(addr, b[:]); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// follow interns the cell at an address of data or of the heap.
func (f *flow) follow(at value, addr evidence.Addr) value {
	if c, ok := f.cells[at]; ok {
		if c == nil {
			return value{}
		}
		return value{kind: loaded, cell: c}
	}
	hops := 1
	if at.kind == loaded {
		hops = at.cell.hops + 1
	}
	n, ok := f.word(addr)
	if !ok || hops > maxHops || at.kind == absolute && !f.around.data(uint64(addr)) {
		f.cells[at] = nil
		return value{}
	}
	c := &cell{at: at, content: n, hops: hops}
	f.cells[at] = c
	return value{kind: loaded, cell: c}
}
