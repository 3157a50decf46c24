package step

import (
	"maps"
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// loop notices that a thread repeats itself: it executes the same instructions, with the same
// memory apart from its own stack.
type loop struct {
	head uint64
	// body and shared are the instructions and accesses of the last iteration, now and other those
	// of the current one.
	body, now     map[uint64]bool
	shared, other map[loopAccess]bool
	same, since   int // iterations, and instructions since the head
	// inner is the target of the last backward jumps since the head was executed; turns counts
	// them in a row.
	inner uint64
	turns int
}

type loopAccess struct {
	pc   uint64
	addr evidence.Addr
}

const (
	loopSame = 16   // equal iterations, after which the rest is not stepped
	loopBody = 256  // instructions of the code
	loopLong = 2048 // instructions of an iteration
	loopSpan = 4096 // bytes
)

// next takes each instruction. ready: the iterations have become the same, and the loop is left by
// one of the exits.
func (l *loop) next(pc uint64, inst *x86.Inst, decode func(uint64) *x86.Inst, accesses func() []Stepped, beside func(evidence.Addr) bool) (exits []uint64, ready bool) {
	if l.since++; l.since > loopLong {
		*l = loop{} // the loop has ended
	}
	if pc == l.head && l.now != nil {
		l.since, l.turns = 0, 0
		if maps.Equal(l.body, l.now) && maps.Equal(l.shared, l.other) {
			l.same++
		} else {
			l.same = 0
		}
		l.body, l.shared = l.now, l.other
		if l.same >= loopSame {
			l.same = 0
			if exits, ready = exitsOf(l.body, decode); ready {
				return exits, true
			}
		}
		l.now, l.other = map[uint64]bool{}, map[loopAccess]bool{}
	}
	if l.now == nil {
		l.now, l.other = map[uint64]bool{}, map[loopAccess]bool{}
	}
	l.now[pc] = true
	for _, a := range accesses() {
		if beside(a.Addr) {
			l.other[loopAccess{pc, a.Addr}] = true
		}
	}
	// The innermost running loop is the one observed. Its head is the target of a backward jump.
	if inst != nil && inst.HasTarget && inst.Target <= pc && pc-inst.Target < loopSpan && inst.Flow != x86.FlowCall && inst.Target != l.head {
		if l.inner != inst.Target {
			l.inner, l.turns = inst.Target, 0
		}
		if l.turns++; l.head == 0 || !l.now[l.head] || l.turns > loopSame {
			*l = loop{head: inst.Target}
		}
	}
	if len(l.now) > loopBody {
		*l = loop{}
	}
	return nil, false
}

// exitsOf returns the addresses outside of the body that its code can reach next.
func exitsOf(body map[uint64]bool, decode func(uint64) *x86.Inst) ([]uint64, bool) {
	var exits []uint64
	add := func(pc uint64) {
		if !body[pc] && !slices.Contains(exits, pc) {
			exits = append(exits, pc)
		}
	}
	for pc := range body {
		inst := decode(pc)
		if inst == nil {
			return nil, false
		}
		next := pc + uint64(inst.Len)
		switch inst.Flow {
		case x86.FlowNext:
			add(next)
		case x86.FlowBranch:
			add(next)
			add(inst.Target)
		case x86.FlowJump:
			if !inst.HasTarget {
				return nil, false
			}
			add(inst.Target)
		case x86.FlowCall:
			if !inst.HasTarget {
				return nil, false
			}
			add(inst.Target)
			add(next)
		case x86.FlowReturn:
			// It returns to the instruction after a call of the body.
		default:
			return nil, false
		}
	}
	return exits, true
}
