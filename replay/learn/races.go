package learn

import (
	"cmp"
	"maps"
	"slices"
)

// wordSize is the granule of memory, in bytes: accesses to one word are taken to overlap.
const wordSize = 8

const lineSize = 64

// access is one access of a thread to memory.
type access struct {
	pc, addr, size uint64
	reads, writes  bool
	// ordered: it is one that the recording orders. canOrder: it can be a learned site.
	ordered, canOrder bool
}

// races finds accesses of several threads to the same words that neither events nor ordered accesses order, by vector clocks
// (Fidge 1988, Mattern 1989). It collects those of several replays, in which the threads and addresses are the same.
type races struct {
	number  int // of the replay
	threads []*clocked
	of      map[uint64]*word
	// lines are the clocks of lines with ordered accesses, objects those of what library functions were called with.
	lines, objects map[uint64]clock
	// decides are the addresses of accesses that read what a branch depends on.
	decides map[uint64]bool
}

// clock has for each thread, by its index, how many of its releases happened before.
type clock []uint64

func (c *clock) join(other clock) {
	for len(*c) < len(other) {
		*c = append(*c, 0)
	}
	for i, v := range other {
		(*c)[i] = max((*c)[i], v)
	}
}

func (c clock) at(i int) uint64 {
	if i >= len(c) {
		return 0
	}
	return c[i]
}

// clocked is a thread with its clock.
type clocked struct {
	number     uint32 // that of the recording
	index      int
	now        clock
	begin, end uint64 // positions of its step
	// published is its clock at the end of the step before, which is at the position begin.
	published clock
}

// word is a word of memory.
type word struct {
	at   uint64 // its address / wordSize
	pcs  []uint64
	uses []use
	// raced counts races.
	raced int
	// compared: two threads accessed it in one replay, and were ordered.
	compared bool
	// steps are those of all replays.
	steps []wordStep
}

// use is the last read and write of a thread in one replay.
type use struct {
	number, index int
	read, write   uint64 // by the thread's clock, 0: none
}

type wordStep struct {
	thread     uint32
	begin, end uint64
	writes     bool
}

const (
	mostPCs   = 16
	mostUses  = 8
	mostWords = 1 << 20
)

func newRaces() races {
	return races{of: map[uint64]*word{}, decides: map[uint64]bool{}}
}

func (r *races) begin() {
	r.number++
	r.threads, r.lines, r.objects = nil, map[uint64]clock{}, map[uint64]clock{}
}

// add gives a thread a clock.
func (r *races) add(t *clocked, number uint32) {
	t.number, t.index = number, len(r.threads)
	t.now = make(clock, t.index+1)
	t.now[t.index] = 1
	r.threads = append(r.threads, t)
}

// step begins a step of a thread at a position. What other threads did in steps that had ended by then happened before.
func (r *races) step(t *clocked, begin, end uint64) {
	t.published = slices.Clone(t.now)
	t.now[t.index]++
	t.begin, t.end = begin, end
	for _, o := range r.threads {
		switch {
		case o == t:
		case o.end < begin:
			t.now.join(o.now)
		case o.begin <= begin:
			t.now.join(o.published)
		}
	}
}

// exchange makes what happened before an operation on an object happen before the next one on it.
func (t *clocked) exchange(clocks map[uint64]clock, object uint64) {
	t.now.join(clocks[object])
	clocks[object] = slices.Clone(t.now)
	t.now[t.index]++
}

// synchronise notes a call with objects as its arguments.
func (r *races) synchronise(t *clocked, objects ...uint64) {
	const lowest = 1 << 20 // smaller numbers are no addresses
	for _, o := range objects {
		if o >= lowest {
			t.exchange(r.objects, o)
		}
	}
}

func (r *races) access(t *clocked, a *access) {
	line := a.addr / lineSize
	if a.ordered {
		t.now.join(r.lines[line])
	}
	if a.ordered || a.canOrder {
		for at := a.addr / wordSize; at <= (a.addr+a.size-1)/wordSize; at++ {
			r.accessWord(t, a, at)
		}
	}
	if a.ordered {
		t.exchange(r.lines, line)
	}
}

func (r *races) accessWord(t *clocked, a *access, at uint64) {
	x := r.of[at]
	if x == nil {
		if len(r.of) >= mostWords {
			return
		}
		x = &word{at: at}
		r.of[at] = x
	}
	if len(x.pcs) < mostPCs && !slices.Contains(x.pcs, a.pc) {
		x.pcs = append(x.pcs, a.pc)
	}
	own := -1
	for i := range x.uses {
		u := &x.uses[i]
		switch {
		case u.number != r.number:
		case u.index == t.index:
			own = i
		default:
			last := u.write
			if a.writes {
				last = max(last, u.read)
			}
			if last > t.now.at(u.index) {
				x.raced++
			} else if last > 0 {
				x.compared = true
			}
		}
	}
	if own < 0 {
		x.uses = slices.DeleteFunc(x.uses, func(u use) bool { return u.number != r.number })
		if len(x.uses) >= mostUses {
			return
		}
		own, x.uses = len(x.uses), append(x.uses, use{number: r.number, index: t.index})
	}
	u := &x.uses[own]
	if a.reads {
		u.read = t.now[t.index]
	}
	if a.writes {
		u.write = t.now[t.index]
	}
	x.noteStep(t, a.writes)
}

func (x *word) noteStep(t *clocked, writes bool) {
	for i := len(x.steps) - 1; i >= 0; i-- {
		if s := &x.steps[i]; s.thread == t.number && s.begin == t.begin {
			s.writes = s.writes || writes
			return
		}
	}
	if len(x.steps) < mostUses {
		x.steps = append(x.steps, wordStep{t.number, t.begin, t.end, writes})
	}
}

// apart reports whether two threads accessed the word in different replays, in steps that may take place at the same time.
func (x *word) apart() bool {
	for i, a := range x.steps {
		for _, b := range x.steps[:i] {
			if a.thread != b.thread && (a.writes || b.writes) && a.begin <= b.end && b.begin <= a.end {
				return !x.compared
			}
		}
	}
	return false
}

// words returns the words that are accessed without an order, those with most races first. awaited are words that a thread
// waits for.
func (r *races) words(awaited []uint64) (list []*word) {
	for _, at := range slices.Sorted(maps.Keys(r.of)) {
		if x := r.of[at]; x.raced > 0 || x.apart() || slices.Contains(awaited, at) {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *word) int { return cmp.Compare(b.raced, a.raced) })
	return list
}
