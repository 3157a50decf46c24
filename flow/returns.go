package flow

import (
	"sort"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// returns are the steps of one thread that return from a function, in order, with the stack pointers before them.
type returns struct {
	least, greatest uint64 // stack pointers of all steps
	at              []int32
	sp              []uint64
	// low and high are the least and the greatest stack pointer of each group.
	low, high []uint64
}

// groupOfReturns is how many returns are passed at once.
const groupOfReturns = 128

func (r *returns) add(n int, sp uint64) {
	if len(r.at)%groupOfReturns == 0 {
		r.low, r.high = append(r.low, sp), append(r.high, sp)
	}
	group := len(r.low) - 1
	r.low[group], r.high[group] = min(r.low[group], sp), max(r.high[group], sp)
	r.at, r.sp = append(r.at, int32(n)), append(r.sp, sp)
}

// FirstReturn is the first step of a thread after one step and before another that returns from a function with the stack pointer, as it is
// before the return, at least low and less than high; -1: there is none.
func (t *Trace) FirstReturn(thread uint32, after, before int, low, high uint64) int {
	r := t.returns()[thread]
	if r == nil {
		return -1
	}
	for i := sort.Search(len(r.at), func(i int) bool { return int(r.at[i]) > after }); i < len(r.at) && int(r.at[i]) < before; {
		if group := i / groupOfReturns; i%groupOfReturns == 0 && (r.high[group] < low || r.low[group] >= high) {
			i += groupOfReturns
			continue
		}
		if r.sp[i] >= low && r.sp[i] < high {
			return int(r.at[i])
		}
		i++
	}
	return -1
}

// OnStack reports whether an address may be in a frame of a function that a thread was in: between its least and its greatest stack pointer.
func (t *Trace) OnStack(addr evidence.Addr) bool {
	const red = 128 // bytes below the stack pointer that a leaf function uses (System V ABI, 3.2.2)
	for _, r := range t.returns() {
		if uint64(addr)+red >= r.least && uint64(addr) < r.greatest {
			return true
		}
	}
	return false
}

// returns are those of all threads. They are looked for when they are asked for first.
func (t *Trace) returns() map[uint32]*returns {
	if t.returned != nil {
		return t.returned
	}
	t.returned = map[uint32]*returns{}
	t.steps.all(func(n int, s *step) {
		r, sp := t.returned[s.thread], s.general[x86.RSP]
		if r == nil {
			r = &returns{least: sp, greatest: sp}
			t.returned[s.thread] = r
		}
		r.least, r.greatest = min(r.least, sp), max(r.greatest, sp)
		if i := t.instructions[s.pc]; !s.library && i != nil && i.inst != nil && i.inst.Flow == x86.FlowReturn {
			r.add(n, sp)
		}
	})
	return t.returned
}
