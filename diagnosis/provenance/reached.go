package provenance

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Reached is the memory whose contents had a part in a step: by its value, by an address, or by a branch without which the step would not
// have been executed, or one of those that gave it something.
type Reached struct {
	// Whole: nothing that the trace does not show had a part as well.
	Whole bool
	// Shared are whole words of up to 8 bytes whose contents had a part, and that another thread than the one which read it there had stored to,
	// or stored to later; the one that was read last is the first. A thread's own stack counts for none.
	Shared []flow.Location
	memory []flow.Location
	// stores are the instructions that stored such contents in memory that is no thread's stack.
	stores []int
}

// From reports whether the contents of one of some bytes had a part.
func (r *Reached) From(addr evidence.Addr, size int) bool {
	return slices.ContainsFunc(r.memory, func(l flow.Location) bool {
		return l.Addr < addr+evidence.Addr(size) && addr < l.Addr+evidence.Addr(l.Size)
	})
}

// Reaching goes back from a thread's step n to all that had a part in it (a dynamic slice, with control: Korel and Laski, IPL 1988). whole
// says that the trace begins with the run. status is where an exit status is that the step hands on; its Size is 0 if there is none.
func Reaching(t *flow.Trace, p Program, n int, status flow.Location, whole bool) *Reached {
	r := &reaching{trace: t, frames: newFrames(t, p), whole: whole, out: &Reached{Whole: whole}, seen: map[wanted]bool{}, steps: map[int]bool{}}
	r.step(n)
	r.want(status, n)
	for len(r.list) > 0 {
		x := r.list[len(r.list)-1]
		r.list = r.list[:len(r.list)-1]
		if len(r.seen) == mostReached {
			r.out.Whole = false
			break
		}
		if !r.seen[x] {
			r.seen[x] = true
			r.take(x)
		}
	}
	if len(r.out.memory) == 0 {
		r.out.Whole = false // each check has something that it tests
	}
	slices.SortStableFunc(r.shared, func(a, b wanted) int { return cmp.Compare(b.n, a.n) })
	for _, x := range r.shared {
		if !slices.Contains(r.out.Shared, x.l) {
			r.out.Shared = append(r.out.Shared, x.l)
		}
	}
	return r.out
}

// mostReached bounds the values that Reaching looks at.
const mostReached = 200_000

type reaching struct {
	trace  *flow.Trace
	frames *frames
	whole  bool
	out    *Reached
	list   []wanted
	seen   map[wanted]bool
	steps  map[int]bool
	shared []wanted
}

// step adds all that a step read, and what decided that it was executed.
func (r *reaching) step(n int) {
	if n == none || r.steps[n] {
		return
	}
	r.steps[n] = true
	s := r.trace.Step(n)
	if s.Inst != nil {
		for k := range s.Inst.Operands {
			r.operand(n, &s.Inst.Operands[k], k)
		}
		for _, place := range transfer.Condition(s.Inst) {
			r.want((&steps{trace: r.trace}).located(n, place), n)
		}
	}
	at, known := r.frames.decider(n)
	if !known && !r.whole {
		r.out.Whole = false
	}
	r.step(at)
}

// operand adds what a step read of an operand, and what the operand's address was made of.
func (r *reaching) operand(n int, o *x86.Operand, k int) {
	thread := r.trace.Step(n).Thread
	if !o.IsMemory {
		if o.Reg.General() && o.Access.Reads() {
			r.want(flow.Register(thread, o.Reg, 8), n)
		}
		return
	}
	for _, reg := range []x86.Reg{o.Memory.Base, o.Memory.Index} {
		if reg.General() {
			r.want(flow.Register(thread, reg, 8), n)
		}
	}
	if l, known := r.trace.Extent(n, k); known && l.Size > 0 && o.Access.Reads() {
		r.want(l, n)
	}
}

// want adds bytes as they were before a step. The stack pointer has no value of the program's.
func (r *reaching) want(l flow.Location, n int) {
	if l.Space == transfer.General && x86.Reg(l.Num) == x86.RSP || l.Size == 0 {
		return
	}
	r.list = append(r.list, wanted{l: l, n: n})
}

// take adds what gave bytes their value.
func (r *reaching) take(x wanted) {
	if x.l.Space == transfer.Memory {
		r.out.memory = append(r.out.memory, x.l)
	}
	d := r.trace.Define(x.l, x.n)
	r.share(x, d)
	r.stored(x, d)
	for _, rest := range others(x.l, d.Part) {
		r.want(rest, x.n)
	}
	switch d.Kind {
	case flow.Constant, flow.Allocated, flow.Freed:
	case flow.Copied, flow.Computed:
		for _, from := range d.From {
			r.want(from, d.At)
		}
	case flow.Before:
		r.out.Whole = r.out.Whole && r.whole
		return
	case flow.Result:
		// Where the heap puts an object is no value of the program's. With several threads, it also depends on their order.
		r.out.Whole = r.out.Whole && r.trace.ObjectMade(d.At) != nil && r.trace.Threads() == 1
	default:
		r.out.Whole = false
	}
	r.step(d.At)
}

// stored notes an instruction that stored to memory which may be another thread's as well.
func (r *reaching) stored(x wanted, d flow.Definition) {
	if x.l.Space == transfer.Memory && d.At >= 0 && r.trace.Step(d.At).Inst != nil && !r.trace.OnStack(x.l.Addr) {
		r.out.stores = append(r.out.stores, d.At)
	}
}

// mostShared bounds the memory that share notes.
const mostShared = 1000

// share notes memory that more than one thread had to do with.
func (r *reaching) share(x wanted, d flow.Definition) {
	const most = 8
	f := steps{trace: r.trace}
	if r.trace.Threads() < 2 || x.l.Space != transfer.Memory || len(r.shared) == mostShared || f.onStack(x.l.Addr, x.n) {
		return
	}
	if size := x.l.Size; size > most || size&(size-1) != 0 || uint64(x.l.Addr)%uint64(size) != 0 {
		return
	}
	reader := r.trace.Step(x.n).Thread
	stores := func(at int) bool { return at >= 0 && r.trace.Step(at).Thread != reader }
	if stores(d.At) || stores(r.trace.Define(x.l, r.trace.Len()).At) {
		r.shared = append(r.shared, x)
	}
}
