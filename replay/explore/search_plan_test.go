package explore

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// orderOf returns an order of events, given as thread numbers.
func orderOf(threads ...uint32) *order {
	o := &order{of: map[uint32][]uint64{}}
	for _, t := range threads {
		o.events = append(o.events, logged{thread: t, ordinal: uint64(len(o.of[t])) + 1, kind: eventlog.KindSyscall})
		o.of[t] = append(o.of[t], uint64(len(o.events)))
	}
	return o
}

// The example of Lee et al., figure 9: system calls 1 to 8, of which 7 differs.
func TestWindow(t *testing.T) {
	o := orderOf(2, 1, 1, 3, 1, 1, 3, 2)
	w := o.window(3, 1, 1)
	if w == nil || len(w.own) != 1 || w.own[0] != (step{3, 1, 4, 6}) {
		t.Fatalf("%+v", w)
	}
	// Of thread 2, the part between calls 1 and 8; of thread 1, from call 3 on.
	want := []step{{1, 4, 6, 8}, {1, 3, 5, 5}, {1, 2, 3, 4}, {2, 1, 1, 7}}
	if !slices.Equal(w.others, want) {
		t.Errorf("the others: %+v, want %+v", w.others, want)
	}
	if w.from() != 4 || w.to() != 6 {
		t.Errorf("from %d to %d", w.from(), w.to())
	}
	if o.window(3, 0, 1) != nil || o.window(9, 1, 1) != nil {
		t.Error("a window of no event")
	}
	if w := o.window(1, 4, 3); len(w.own) != 3 || w.own[2].ordinal != 2 {
		t.Errorf("three steps: %+v", w)
	}
}

func TestHoldable(t *testing.T) {
	o := orderOf(1, 2, 1)
	s, _ := o.step(1, 1)
	if !o.holdable(s) {
		t.Error("a step after a system call")
	}
	for _, kind := range []eventlog.Kind{eventlog.KindOrder, eventlog.KindHeap, eventlog.KindCreate, eventlog.KindExit} {
		o.events[0].kind = kind
		if o.holdable(s) {
			t.Errorf("a step after %v", kind)
		}
	}
	if s, _ := o.step(2, 1); s.end != 3 {
		t.Errorf("the last step ends at %d", s.end)
	}
}

func TestPlans(t *testing.T) {
	at := func(behind int, pc evidence.Addr, count uint64) place { return place{2, 5, pc, count, behind} }
	pc := func(p evidence.Addr, count, until uint64) eventlog.Preemption {
		return eventlog.Preemption{Thread: 2, Ordinal: 5, Class: eventlog.PointPC, PC: p, Count: count, Until: until}
	}
	hold := func(until uint64) eventlog.Preemption {
		return eventlog.Preemption{Thread: 2, Ordinal: 5, Class: eventlog.PointEvent, Until: until}
	}
	s := step{thread: 2, ordinal: 5, begin: 10, end: 20}
	p, ok := plan{timing: record.TimingEager}.preempt(at(0, 0x10, 1), 12)
	if !ok || !slices.Equal(p.list, []eventlog.Preemption{pc(0x10, 1, 12)}) {
		t.Fatalf("%v", p)
	}
	two, _ := p.preempt(at(1, 0x20, 3), 15)
	if !slices.Equal(two.list, []eventlog.Preemption{pc(0x10, 1, 12), pc(0x20, 3, 15)}) {
		t.Errorf("after it: %v", two)
	}
	if held := two.hold(s, 11).hold(s, 13); !slices.Equal(held.list, []eventlog.Preemption{hold(13), pc(0x10, 1, 12), pc(0x20, 3, 15)}) {
		t.Errorf("held: %v", held)
	}
	if q, ok := two.preempt(at(0, 0x18, 1), 14); !ok || !slices.Equal(q.list, []eventlog.Preemption{pc(0x18, 1, 14)}) {
		t.Errorf("before both: %v", q)
	}
	if q, ok := two.preempt(at(2, 0x20, 0), 18); !ok || !slices.Equal(q.list, []eventlog.Preemption{pc(0x10, 1, 12), pc(0x20, 3, 18)}) {
		t.Errorf("the second ends later: %v", q)
	}
	for name, bad := range map[string]place{"no count": at(0, 0x10, 0), "no address": at(0, 0, 1), "elsewhere": at(2, 0x30, 0)} {
		if _, ok := two.preempt(bad, 18); ok {
			t.Error(name)
		}
	}
	// The count of a later preemption at the same instruction starts from that of the removed
	// one.
	same, _ := p.preempt(at(1, 0x10, 2), 15)
	if q := same.without(0); !slices.Equal(q.list, []eventlog.Preemption{pc(0x10, 3, 15)}) {
		t.Errorf("without the first: %v", q)
	}
	if len(p.list) != 1 || len(two.list) != 2 {
		t.Error("a plan was changed by a plan made of it")
	}
}

func TestCache(t *testing.T) {
	c := newCache()
	d := signature{reason: "kind", expected: 1, got: 2}
	list := []candidate{{shape: shape{back: 0}}, {shape: shape{back: 1}}, {shape: shape{back: 2}}}
	if got := c.first(d, list); got[0].shape.back != 0 {
		t.Error("an empty cache changes the order")
	}
	if c.addSignature(d, shape{back: 2}) || !c.addSignature(d, shape{back: 2}) {
		t.Error("new plans and known ones")
	}
	if got := c.first(d, list); got[0].shape.back != 2 || got[1].shape.back != 0 || list[0].shape.back != 0 {
		t.Errorf("%+v", got)
	}
	if got := c.first(signature{reason: "site"}, list); got[0].shape.back != 0 {
		t.Error("another divergence")
	}
	if c.insideFirst() {
		t.Error("after events helped more often")
	}
	at := []candidate{{shape: shape{pc: 7}}, {shape: shape{pc: 9, with: 1}}, {shape: shape{back: 2}}, {shape: shape{pc: 9}}}
	for range 3 {
		c.addSignature(signature{reason: "site"}, shape{pc: 9})
	}
	if got := c.first(d, at); got[0].shape.back != 2 || got[1].shape.with != 1 || got[2].shape.pc != 9 || got[3].shape.pc != 7 {
		t.Errorf("what helped with another divergence at the same instruction: %+v", got)
	}
	if !c.insideFirst() {
		t.Error("at instructions helped more often")
	}
}

// Of the accesses to a word, the first of a step, the last, and ones at growing distances are
// kept, in their order.
func TestWatched(t *testing.T) {
	const word, pc = 0x100, 0x40
	x := &watched{windows: map[uint32]replay.StepWindow{2: {From: 3, To: 4}}, locks: []uint64{0x99, 0x77}, of: map[evidence.Addr]*wordAccesses{}}
	hit := func(thread uint32, ordinal uint64, by evidence.By) {
		x.hit(word, &replay.Hit{Thread: thread, Ordinal: ordinal, Position: 9, PC: pc, Kind: evidence.CodeRead, By: by, Held: 2})
	}
	for range 100 {
		hit(2, 3, evidence.ByProgram)
	}
	hit(2, 5, evidence.ByProgram) // after the window
	hit(1, 3, evidence.ByProgram) // of another thread
	hit(2, 4, evidence.ByCall)    // the kernel's
	hit(2, 4, evidence.ByProgram)
	tr := x.trace()
	var counts []uint64
	for i, a := range tr.accesses {
		counts = append(counts, a.Count)
		if a.PC != pc || a.Addr != word || a.Kind != evidence.Read || !slices.Equal(tr.locks[i], lockset{0x77}) {
			t.Errorf("%+v, locks %v", a, tr.locks[i])
		}
	}
	if want := []uint64{1, 2, 4, 8, 16, 32, 64, 100, 1}; !slices.Equal(counts, want) {
		t.Errorf("arrivals %v, not %v", counts, want)
	}
	for range mostArrivals {
		hit(2, 4, evidence.ByProgram)
	}
	tr = x.trace()
	if last := tr.accesses[len(tr.accesses)-1]; last.Count != 0 {
		t.Errorf("a thread would be preempted at arrival %d", last.Count)
	}
}

// The words identify a change. Pages with many changes are left out, and the program's own
// variables are first.
func TestChanges(t *testing.T) {
	const own, heap, full = 0x404000, 0x208000001000, 0x404000 + 2*page
	c := &changes{before: map[evidence.Addr][]byte{}, pages: map[evidence.Addr]map[evidence.Addr]bool{}}
	step := func(write func(at evidence.Addr, p []byte)) {
		for _, at := range []evidence.Addr{heap, own, full} {
			p := slices.Clone(c.before[at])
			if p == nil {
				p = make([]byte, page)
			}
			write(at, p)
			c.compare(at, p)
		}
		c.seen = true
	}
	step(func(_ evidence.Addr, p []byte) { p[0] = 1 })
	if len(c.pages) != 0 {
		t.Fatalf("the first look: %v", c.pages)
	}
	step(func(at evidence.Addr, p []byte) {
		p[17], p[800] = 1, 1
		for i := range p {
			if at == full {
				p[i]++
			}
		}
	})
	step(func(_ evidence.Addr, p []byte) { p[17] = 2 })
	list, all := c.words(func(word evidence.Addr) bool { return word == own+800 })
	if want := []evidence.Addr{own + 16, heap + 16, heap + 800}; !slices.Equal(list, want) || all {
		t.Errorf("changed: %v, all of them %v; want %v", list, all, want)
	}
}

// An access of a thread is paired with those of other threads that the log does not order,
// unless both are under the same lock.
func TestPairs(t *testing.T) {
	o := orderOf(1, 2, 1, 2)
	o.events[1] = logged{thread: 2, ordinal: 1, kind: eventlog.KindMutex, object: 0x99, taken: true}
	s := &search{order: o}
	h := holders{order: o, of: map[uint32]*holder{}}
	tr := &trace{}
	access := func(thread uint32, ordinal, position uint64, addr evidence.Addr, kind evidence.AccessKind) {
		x := replay.Stepped{Thread: thread, Ordinal: ordinal, Position: position, Addr: addr, Size: 4, Kind: kind}
		tr.accesses, tr.locks = append(tr.accesses, x), append(tr.locks, h.holderAt(&x).locks)
	}
	lock := func(thread uint32, ordinal uint64, what does) {
		h.holderAt(&replay.Stepped{Thread: thread, Ordinal: ordinal}).call(what, 0x99)
	}
	access(1, 1, 1, 0x100, evidence.Read)
	lock(1, 1, takes)
	access(1, 1, 1, 0x200, evidence.Write)
	lock(1, 1, gives)
	access(1, 1, 1, 0x300, evidence.Read)
	access(2, 1, 2, 0x100, evidence.Write) // a race
	access(2, 1, 2, 0x200, evidence.Write) // under the lock that the event took
	access(2, 1, 2, 0x300, evidence.Read)  // both read
	access(2, 2, 4, 0x100, evidence.Write) // after the other thread's next event
	got := s.pairs(&outcome{thread: 1}, tr)
	if len(got) != 1 || got[0].first.Addr != 0x100 || got[0].second.Position != 2 || !got[0].own || got[0].end != 2 {
		t.Errorf("%+v", got)
	}
}

// A spinning thread waits for an action of another at any time of its step, not only at its
// end.
func TestCoarseOfSpinning(t *testing.T) {
	s := &search{order: orderOf(1, 2, 1, 1, 1, 2)}
	o := &outcome{plan: plan{timing: record.TimingEager}, thread: 1, ordinal: 3, pc: 0x10}
	held := func() (until []uint64) {
		for _, c := range s.coarse(o, s.order.window(1, 3, 1)) {
			if p := c.plan.list; len(p) == 1 && p[0].Thread == 2 && p[0].Ordinal == 1 && p[0].Class == eventlog.PointEvent {
				until = append(until, p[0].Until)
			}
		}
		return until
	}
	if got := slices.Compact(held()); !slices.Equal(got, []uint64{5}) {
		t.Errorf("of one that goes another way: until %v", got)
	}
	o.stuck = true
	if got := slices.Compact(held()); !slices.Equal(got, []uint64{5, 4, 3}) {
		t.Errorf("of one that spins: until %v", got)
	}
}

// That a thread loops for ever is the same in each replay. That it computed for long is not.
func TestNoteOfSpinning(t *testing.T) {
	var m memory
	m.note(&outcome{stuck: true})
	if len(m.list) != 0 {
		t.Errorf("one that computed is remembered: %v", m.list)
	}
	m.note(&outcome{stuck: true, endless: true})
	if len(m.list) != 1 {
		t.Errorf("one without an end is not: %v", m.list)
	}
}
