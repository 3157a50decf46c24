package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// op is how a node's value came about.
type op uint8

const (
	opLost    op = iota // why says what is not known
	opConst             // n
	opCopy              // a, unchanged but for a width of size bytes
	opLoad              // size bytes at the address a
	opSum               // a + b
	opProduct           // a * n
	opEntry             // the register had it at the function's entry
	opResult            // the call at def returned it
	opMade              // the instruction at def made it of a, or of a and b
)

// node is a value on its way back from the failing instruction.
type node struct {
	op     op
	a, b   *node
	n      int64
	size   int
	signed bool
	why    string
	// reg had the value before the instruction at pos; RegNone for a value
	// that was in no register of its own. def is the instruction that gave
	// it, -1 when there is none.
	reg      x86.Reg
	pos, def int
	// ways are the instructions that may have set it, where they are several.
	ways []int
	// at is a load's abstract address.
	at value
	// stored is what the function put into the stack word that a load read.
	stored *node
	// choice: a made value is one of the two.
	choice bool
	// likely: among several ways that the value may have come, this one gives
	// what the register holds, and the others are not known.
	likely bool
	// advanced: a loop moved the value on by steps of its own.
	advanced bool

	// exact is the value as the stopped process still has it in a register;
	// computed is what the process's memory yields now.
	exact, computed       uint64
	isExact, isComputable bool
	// settled: the computed value follows from a comparison that came out so.
	settled bool
}

// best is the value as far as it is known.
func (n *node) best() (uint64, bool) {
	if n.isExact {
		return n.exact, true
	}
	return n.computed, n.isComputable
}

// unmoved reports that a value which a loop moves on is still its first one.
func (n *node) unmoved() bool {
	if n.a == nil {
		return false
	}
	now, ok := n.best()
	first, known := n.a.best()
	return ok && known && now == first
}

// changed reports that memory no longer yields what the register holds.
func (n *node) changed() bool { return n.isExact && n.isComputable && n.exact != n.computed }

// Bounds of a slice in one function.
const (
	maxNodes      = 400
	maxDepth      = 24
	maxCandidates = 4
)

// backwardSlice goes back from one point of one frame.
type backwardSlice struct {
	*processView
	in        *Input
	index     int // of the frame
	frame     *unwind.Frame
	registers image.Registers
	a         *analysis
	now       int
	entrySP   evidence.Addr // 0 when not known
	memo      map[place]*node
	nodes     int
	words     int // calls of describe
	variables map[evidence.Addr][]variable
	// outward is the caller's slice once it was opened; hop counts the
	// frames between this one and the failing one.
	outward *backwardSlice
	hop     int
	// unverified: the call at now goes through a pointer that is not known
	// any more, so that it led to the inner frame is only likely.
	unverified bool
}

type place struct {
	pos int
	reg x86.Reg
}

// newSlice opens a frame. regs are the registers known at its instruction.
func (w *processView) newSlice(in *Input, index int, regs image.Registers) (*backwardSlice, error) {
	f := &in.Frames[index]
	a, err := w.analyse(f.LookupPC())
	if err != nil {
		return nil, err
	}
	return w.openSlice(in, index, f, a, regs), nil
}

func (w *processView) openSlice(in *Input, index int, f *unwind.Frame, a *analysis, regs image.Registers) *backwardSlice {
	s := &backwardSlice{processView: w, in: in, index: index, frame: f, registers: regs, a: a, now: instructionOf(a, f),
		memo: map[place]*node{}, variables: map[evidence.Addr][]variable{}}
	if f.CFA != 0 {
		s.entrySP = f.CFA - 8
	}
	return s
}

func lostNode(why string) *node { return &node{op: opLost, why: why, reg: x86.RegNone, def: -1} }

func constNode(n uint64, def int) *node {
	return &node{op: opConst, n: int64(n), reg: x86.RegNone, def: def, computed: n, isComputable: true}
}

// register is the value of r before the instruction at pos.
func (s *backwardSlice) register(pos int, r x86.Reg, depth int) *node {
	key := place{pos, r}
	if n, ok := s.memo[key]; ok {
		return n
	}
	s.nodes++
	if depth > maxDepth || s.nodes > maxNodes || !r.General() {
		return lostNode("the way back is too long")
	}
	// A value that depends on itself, in a loop, finds this one.
	s.memo[key] = lostNode("a loop computes it from itself")
	n := s.defined(pos, r, depth)
	n.reg, n.pos = r, pos
	if s.a.flow.survives(pos, s.now, r) {
		if v, ok := s.registers.Get(image.Register(r)); ok {
			n.exact, n.isExact = v, true
			if n.op == opLost || n.advanced {
				s.confirm(n, pos, r, depth)
			}
		}
	}
	s.memo[key] = n
	return n
}

// defined finds the definition of r that reaches pos.
func (s *backwardSlice) defined(pos int, r x86.Reg, depth int) *node {
	defs := s.definitions(pos, r)
	var own []int
	for _, d := range defs {
		if d < 0 || len(defs) == 1 || !s.advances(d, r) {
			own = append(own, d)
		}
	}
	if one := s.oneOrigin(own, r, depth); one != nil && len(own) == len(defs) {
		return one
	}
	if len(own) != 1 {
		n := lostNode(manyWays(len(own)))
		n.ways = own
		return n
	}
	n := s.definedBy(own[0], r, depth)
	if len(defs) > len(own) {
		n = s.advancedFrom(n)
	}
	return n
}

// oneOrigin is the value of a register of which several ways bring the same: it was
// kept in the frame on one of them. Nil if they differ.
func (s *backwardSlice) oneOrigin(defs []int, r x86.Reg, depth int) *node {
	if len(defs) < 2 || len(defs) > maxCandidates {
		return nil
	}
	var first *node
	for _, d := range defs {
		n := s.definedBy(d, r, depth+1)
		root := n
		for range maxDepth {
			if root.op == opLoad && root.stored != nil {
				root = root.stored
			} else if root.op == opCopy && root.size == 8 && !root.advanced {
				root = root.a
			} else {
				break
			}
		}
		switch {
		case root.op != opEntry && root.op != opResult:
			return nil
		case first == nil:
			first = root
		case !s.sameSource(first, root):
			return nil
		}
	}
	return first
}

func (s *backwardSlice) definitions(pos int, r x86.Reg) []int {
	return s.a.flow.reaching(pos, func(i int) bool { return defines(&s.a.flow.insts[i], r) })
}

func (s *backwardSlice) advancedFrom(n *node) *node {
	return &node{op: opCopy, a: n, size: 8, advanced: true, reg: x86.RegNone, def: n.def}
}

func manyWays(n int) string {
	if n == 0 {
		return "only a loop sets it"
	}
	return "several instructions may have set it, on different paths through the function"
}

// advances reports whether an instruction only moves a register on by a
// constant, as loops do with pointers and counters.
func (s *backwardSlice) advances(d int, r x86.Reg) bool {
	in := &s.a.flow.insts[d]
	dst, ok := explicit(in, 0)
	if !ok || dst.IsMemory || dst.Reg != r {
		return false
	}
	src, two := explicit(in, 1)
	switch in.Op {
	case "inc", "dec":
		return true
	case "add", "sub":
		return two && src.IsImm
	case "lea":
		return two && src.Memory.Base == r && src.Memory.Index == x86.RegNone
	}
	return false
}

// entryValue is what the caller passed in a register, if that can be told.
func (s *backwardSlice) entryValue(r x86.Reg) *node {
	n := &node{op: opEntry, def: -1, reg: r}
	if r == x86.RSP && s.entrySP != 0 {
		n.computed, n.isComputable = uint64(s.entrySP), true
		return n
	}
	if caller, _ := s.caller(r); caller != nil {
		n.computed, n.isComputable = caller.register(caller.now, r, 0).best()
	}
	return n
}

// confirm chooses among several definitions the only one that yields what
// the register holds. Beside definitions that cannot be computed only the
// caller's value is taken, which library functions move on in loops.
func (s *backwardSlice) confirm(n *node, pos int, r x86.Reg, depth int) {
	defs := s.definitions(pos, r)
	if len(defs) < 2 || len(defs) > maxCandidates {
		return
	}
	var match *node
	unknown := 0
	for _, d := range defs {
		c := s.definedBy(d, r, depth)
		if !c.isComputable {
			unknown++
			continue
		}
		if c.computed == n.exact {
			if match != nil {
				return
			}
			match = c
		}
	}
	if match != nil && (unknown == 0 || match.op == opEntry) {
		match.likely = unknown > 0
		exact := n.exact
		*n = *match
		n.reg, n.pos, n.exact, n.isExact = r, pos, exact, true
	}
}

// definedBy is the value that the instruction at d gives to r.
func (s *backwardSlice) definedBy(d int, r x86.Reg, depth int) *node {
	switch d {
	case atEntry:
		return s.entryValue(r)
	case lost:
		return lostNode("it is set before a jump through a table or the landing pad of an exception")
	}
	in := &s.a.flow.insts[d]
	switch in.Flow {
	case x86.FlowCall:
		if r == x86.RAX {
			return &node{op: opResult, reg: x86.RegNone, def: d}
		}
		return lostNode("a call in between was free to change it")
	case x86.FlowSyscall:
		return lostNode("a system call set it")
	}
	n := s.computedBy(d, in, r, depth+1)
	n.def = d
	return n
}

// varies reports whether a value was made of anything but constants.
func (n *node) varies(depth int) bool {
	if n == nil || depth > maxDepth {
		return n != nil
	}
	switch n.op {
	case opConst:
		return false
	case opCopy, opProduct:
		return n.a.varies(depth + 1)
	case opSum, opMade:
		return n.a.varies(depth+1) || n.b.varies(depth+1)
	}
	return true
}
