package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Touch is an access to memory that a frame's function has made for certain, in
// the call that the frame is of.
type Touch struct {
	// PC is the instruction.
	PC     evidence.Addr
	Addr   evidence.Addr
	Size   int
	Access evidence.AccessKind
	// Name is what the program calls the memory, empty if it has no words.
	Name string
	// Held: a pointer on the way to the address was read from memory that could have
	// changed since; it holds that address now.
	Held bool

	slice *backwardSlice
	at    int
}

// maxTouched bounds the instructions of a function that are looked at, nearest
// to the failing one first.
const maxTouched = 4000

// Touched lists the accesses to memory that the function of a frame has made on
// every way to where the frame is, at addresses that wanted names. An address
// counts only if what it was made of has not changed since: registers, words of
// the stack frame that nothing stores to on the way, and what the caller passed;
// or, of a Touch that says so, other memory as it is now.
// The error says why the frame's code could not be looked at.
func Touched(in Input, frame int, wanted func(evidence.Addr) bool) ([]Touch, error) {
	s, err := newWorld(&in).newSlice(&in, frame, in.Frames[frame].Registers)
	if err != nil || s.now < 0 {
		return nil, err
	}
	var list []Touch
	for _, i := range s.nearest() {
		inst := &s.a.flow.insts[i]
		for n := range inst.Operands {
			op := &inst.Operands[n]
			if !op.IsMemory || op.Access == "" || op.Implicit || op.Memory.Segment != x86.SegNone || s.a.addrs[i].kind == stack {
				continue
			}
			s.nodes = 0
			address := s.addressOf(i, &op.Memory, 0)
			var held bool
			v, ok := s.settled(address, &held, 0)
			if !ok || !wanted(evidence.Addr(v)) || !s.executed(i) {
				continue
			}
			t := Touch{PC: evidence.Addr(inst.PC), Addr: evidence.Addr(v), Size: op.Size, Access: op.Access, Held: held, slice: s, at: i}
			if e, ok := s.describePlace(address, op.Size, i, 0); ok {
				t.Name = e.text
			}
			list = append(list, t)
		}
	}
	return list, nil
}

// nearest are the function's instructions from where the frame is backwards,
// then those after it, to which a loop may have led.
func (s *backwardSlice) nearest() []int {
	var list []int
	for i := s.now; i >= 0 && len(list) < maxTouched; i-- {
		list = append(list, i)
	}
	for i := s.now + 1; i < len(s.a.flow.insts) && len(list) < maxTouched; i++ {
		list = append(list, i)
	}
	return list
}

// executed reports whether the instruction was executed in this call whatever way
// it took. What a caller's frame is at is a call, which has read its target.
func (s *backwardSlice) executed(i int) bool {
	if i == s.now {
		return s.a.flow.insts[i].Flow == x86.FlowCall
	}
	return onlyWay(s.a.flow.reaching(s.now, func(k int) bool { return k == i }), i)
}

func onlyWay(ways []int, i int) bool { return len(ways) == 1 && ways[0] == i }

// settled is a value that is known and has not changed since it was used; *held is
// set where that rests on what memory holds now.
func (s *backwardSlice) settled(n *node, held *bool, depth int) (uint64, bool) {
	switch {
	case n == nil || depth > maxDepth:
		return 0, false
	case n.isExact:
		return n.exact, true
	case n.likely || n.advanced:
		return 0, false
	}
	switch n.op {
	case opConst:
		return uint64(n.n), true
	case opCopy:
		v, ok := s.settled(n.a, held, depth+1)
		return extend(v, n.size, n.signed), ok
	case opSum:
		x, ok := s.settled(n.a, held, depth+1)
		y, both := s.settled(n.b, held, depth+1)
		return x + y, ok && both
	case opProduct:
		v, ok := s.settled(n.a, held, depth+1)
		return v * uint64(n.n), ok
	case opEntry:
		return s.settledEntry(n, held, depth)
	case opLoad:
		return s.settledLoad(n, held, depth)
	}
	return 0, false
}

func (s *backwardSlice) settledLoad(n *node, held *bool, depth int) (uint64, bool) {
	switch {
	case s.keptWord(n):
		return n.computed, n.isComputable
	case n.stored != nil:
		v, ok := s.settled(n.stored, held, depth+1)
		return extend(v, n.size, n.signed), ok
	case n.at.kind == stack || n.size != 8:
		return 0, false
	}
	if _, ok := s.settled(n.a, held, depth+1); !ok {
		return 0, false
	}
	*held = true
	return n.computed, n.isComputable
}

func (s *backwardSlice) settledEntry(n *node, held *bool, depth int) (uint64, bool) {
	if n.reg == x86.RSP {
		return n.computed, n.isComputable
	}
	caller, _ := s.caller(n.reg)
	if caller == nil || caller.unverified {
		return 0, false
	}
	caller.nodes = 0
	return caller.settled(caller.register(caller.now, n.reg, 0), held, depth+1)
}

// keptWord reports whether a word of the function's own frame holds what a load
// found there: its address is not taken, and nothing stores to it on the way.
func (s *backwardSlice) keptWord(n *node) bool {
	if n.at.kind != stack || n.at.varies || n.pos < 0 || s.escapes(n, n.pos) {
		return false
	}
	return n.pos == s.now || onlyWay(s.a.flow.reaching(s.now, func(i int) bool {
		return i == n.pos || s.storesInto(i, n.at, n.size)
	}), n.pos)
}

// Within reports whether code is of the function that made the access.
func (t *Touch) Within(pc evidence.Addr) bool { return t.slice.a.function.contains(pc) }

// After reports whether, on every way to where the frame is, the access was made
// after the last call that returns to an address in the function.
func (t *Touch) After(returns evidence.Addr) bool {
	flow := t.slice.a.flow
	call, ok := flow.endingAt(uint64(returns))
	if !ok || call == t.slice.now { // not known, or not over yet
		return false
	}
	return t.at == t.slice.now || onlyWay(flow.reaching(t.slice.now, func(i int) bool { return i == t.at || i == call }), t.at)
}
