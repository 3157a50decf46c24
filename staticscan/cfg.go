package staticscan

import (
	"slices"
	"sort"

	"diagnose/image/x86"
)

// block is a run of instructions with one entrance: insts[first:end].
type block struct {
	first, end int
	next       []int // successors
	prev       []int // predecessors
	// indirect: it ends in a jump whose targets are not known.
	indirect bool
}

// graph is a function's instructions and how control passes among them.
type graph struct {
	insts  []x86.Inst
	blocks []block
	// blockOf gives each instruction's block; entry is that of the function's
	// first instruction.
	blockOf []int
	entry   int
	// orphans are blocks that no known edge reaches: targets of jump tables,
	// and landing pads of exceptions.
	orphans []int
}

// newGraph builds the graph; insts are sorted by PC and may have gaps.
func newGraph(insts []x86.Inst, entry uint64) *graph {
	g := &graph{insts: insts, blockOf: make([]int, len(insts))}
	leaders := make([]bool, len(insts)+1)
	if len(insts) > 0 {
		leaders[0] = true
	}
	for i := range insts {
		in := &insts[i]
		if ends(in) || !g.falls(i) {
			leaders[i+1] = true
		}
		if in.HasTarget && (in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch) {
			if t, ok := g.index(in.Target); ok {
				leaders[t] = true
			}
		}
	}
	if e, ok := g.index(entry); ok {
		leaders[e] = true
	}
	for i := range insts {
		if leaders[i] {
			g.blocks = append(g.blocks, block{first: i})
		}
		g.blockOf[i] = len(g.blocks) - 1
		g.blocks[len(g.blocks)-1].end = i + 1
	}
	if e, ok := g.index(entry); ok {
		g.entry = g.blockOf[e]
	}
	g.link()
	return g
}

func ends(in *x86.Inst) bool {
	switch in.Flow {
	case x86.FlowJump, x86.FlowBranch, x86.FlowReturn, x86.FlowTrap:
		return true
	}
	return false
}

// falls reports whether instruction i+1 follows i in memory.
func (g *graph) falls(i int) bool {
	return i+1 < len(g.insts) && g.insts[i].PC+uint64(g.insts[i].Len) == g.insts[i+1].PC
}

// index finds the instruction that starts at pc.
func (g *graph) index(pc uint64) (int, bool) {
	i := sort.Search(len(g.insts), func(i int) bool { return g.insts[i].PC >= pc })
	return i, i < len(g.insts) && g.insts[i].PC == pc
}

// endingAt finds the instruction that ends at pc: the call before a return
// address.
func (g *graph) endingAt(pc uint64) (int, bool) {
	i := sort.Search(len(g.insts), func(i int) bool { return g.insts[i].PC >= pc }) - 1
	return i, i >= 0 && g.insts[i].PC+uint64(g.insts[i].Len) == pc
}

func (g *graph) link() {
	for b := range g.blocks {
		last := g.blocks[b].end - 1
		in := &g.insts[last]
		if in.HasTarget && (in.Flow == x86.FlowJump || in.Flow == x86.FlowBranch) {
			if t, ok := g.index(in.Target); ok {
				g.edge(b, g.blockOf[t])
			}
		}
		if in.Flow == x86.FlowJump && !in.HasTarget {
			g.blocks[b].indirect = true
		}
		goesOn := in.Flow != x86.FlowJump && in.Flow != x86.FlowReturn && in.Flow != x86.FlowTrap
		if goesOn && g.falls(last) {
			g.edge(b, b+1)
		}
	}
	for b := range g.blocks {
		switch {
		case len(g.blocks[b].prev) > 0 || b == g.entry:
		case g.padding(b):
			g.cut(b)
		default:
			g.orphans = append(g.orphans, b)
		}
	}
}

// cut takes a block that nothing executes out of the ways to what lies behind it.
func (g *graph) cut(b int) {
	for _, next := range g.blocks[b].next {
		g.blocks[next].prev = slices.DeleteFunc(g.blocks[next].prev, func(p int) bool { return p == b })
	}
	g.blocks[b].next = nil
}

func (g *graph) edge(from, to int) {
	g.blocks[from].next = append(g.blocks[from].next, to)
	g.blocks[to].prev = append(g.blocks[to].prev, from)
}

// padding reports whether the block is only the filling between aligned
// blocks, which nothing executes.
func (g *graph) padding(b int) bool {
	for i := g.blocks[b].first; i < g.blocks[b].end; i++ {
		switch g.insts[i].Op {
		case "nop", "int3", "data16", "xchg":
		default:
			return false
		}
	}
	return true
}
