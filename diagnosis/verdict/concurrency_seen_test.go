package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/patterns"
)

// TestOrderState: what became of an order is what the accesses that were seen tell.
func TestOrderState(t *testing.T) {
	const pc = 0x1000
	look := func(at ...int) *orderLook {
		l := &orderLook{}
		for _, n := range at {
			l.accesses = append(l.accesses, &lookedFor{at: n, inst: x86.Inst{PC: pc}})
		}
		return l
	}
	cut := look(1, 2)
	cut.cut = true
	// Two variables that one thread read, and another one stored to before and after.
	pair := func(first, read, also, last int) *orderLook {
		l := look(first, read, also, last)
		for i, thread := range []uint32{2, 3, 3, 2} {
			l.accesses[i].thread = thread
		}
		l.accesses[2].addr, l.accesses[3].addr = 0x20, 0x20
		return l
	}
	for _, x := range []struct {
		name     string
		look     *orderLook
		unbroken []evidence.Addr
		want     orderState
	}{
		{"as recorded", look(1, 2, 5), nil, orderKept},
		{"the other one first", look(2, 1), nil, orderRemoved},
		{"the other one last", look(1, 6, 5), nil, orderRemoved},
		{"one did not come", look(1, 0), nil, orderAbsent},
		{"one did not come, two in another order", look(4, 2, 0), nil, orderRemoved},
		{"too many stops", cut, nil, orderUnknown},
		{"a trap was removed", look(1, 2), []evidence.Addr{pc}, orderUnknown},
		{"no look", nil, nil, orderUnknown},
		{"a pair", pair(1, 2, 3, 4), nil, orderKept},
		{"a pair whose reads come the other way around", pair(1, 3, 2, 4), nil, orderKept},
		{"a pair between whose reads the store comes", pair(1, 4, 2, 3), nil, orderRemoved},
	} {
		if got := x.look.state(x.unbroken); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}

// TestGuard: a read of the failing thread is a guard if the thread accesses the variable once more, or if
// it read nothing else later.
func TestGuard(t *testing.T) {
	const begin = "main t1\nt1 create t2 reader\nt1 create t3 writer\n"
	for _, x := range []struct {
		name, log  string
		accesses   []int
		unresolved int
		want       *guard
	}{
		{"it is read and used", "t2 R item 1 @10\nt3 W item 1->0 @20\nt2 W item 0->2 @11", []int{0, 1, 2}, 5, &guard{0, 2}},
		{"the last that is read", "t2 R item 1 @10\nt3 W item 1->0 @20", []int{0, 1}, 0, &guard{0, -1}},
		{"the last that is read, after it is written", "t3 W item 1->0 @20\nt2 R item 0 @10", []int{0, 1}, 0, &guard{1, -1}},
		{"memory that is read is not known", "t2 R item 1 @10\nt3 W item 1->0 @20", []int{0, 1}, 1, nil},
		{"another variable is read later", "t2 R item 1 @10\nt3 W item 1->0 @20\nt2 R other 0 @12", []int{0, 1}, 0, nil},
		{"the thread writes", "t2 W item 0->1 @10\nt3 R item 1 @20", []int{0, 1}, 0, nil},
		{"accesses of another thread", "t1 R item 1 @10\nt3 W item 1->0 @20", []int{0, 1}, 0, nil},
	} {
		r := flowRace(begin+x.log+"\n", "")
		r.Case.Scan = &evidence.Scan{Unresolved: x.unresolved}
		got := r.guardOf(&patterns.Candidate{Variables: []string{"item"}, Accesses: x.accesses})
		if (got == nil) != (x.want == nil) || got != nil && *got != *x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

// TestTurned: a guard turns a thread away if it was read in another order, and the thread did not come to
// the later access that belongs to it.
func TestTurned(t *testing.T) {
	const pc = 0x1000
	for _, x := range []struct {
		name     string
		guard    *guard
		at       []int
		unbroken []evidence.Addr
		want     bool
	}{
		{"it came to both", &guard{0, 2}, []int{2, 1, 3}, nil, false},
		{"not to the later one", &guard{0, 2}, []int{2, 1, 0}, nil, true},
		{"to neither", &guard{0, 2}, []int{0, 2, 1}, nil, false},
		{"in the recorded order", &guard{0, -1}, []int{1, 2}, nil, false},
		{"in another order", &guard{0, -1}, []int{2, 1}, nil, true},
		{"a trap was removed", &guard{0, -1}, []int{2, 1}, []evidence.Addr{pc}, false},
		{"no guard", nil, []int{2, 1}, nil, false},
	} {
		l := &orderLook{}
		for _, n := range x.at {
			l.accesses = append(l.accesses, &lookedFor{at: n, inst: x86.Inst{PC: pc}})
		}
		if got := x.guard.turned(l, x.unbroken); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
	if (&guard{0, -1}).turned(nil, nil) {
		t.Error("without a look it is said that a thread was turned away")
	}
}

// TestNotRemoved: a run that passes with the order as it was proves nothing, and one that fails rules
// the order out only if that was seen to be another.
func TestNotRemoved(t *testing.T) {
	for _, x := range []struct {
		name   string
		failed int
		state  orderState
		want   string
	}{
		{"passes without the order", 0, orderRemoved, ""},
		{"passes, some accesses did not come", 0, orderAbsent, ""},
		{"passes, not known", 0, orderUnknown, ""},
		{"passes with the order", 0, orderKept, keptAllTheSame},
		{"fails without the order", 1, orderRemoved, ""},
		{"fails with the order", 1, orderKept, notSeenToBeOther},
		{"fails, some accesses did not come", 1, orderAbsent, notSeenToBeOther},
		{"fails, not known", 1, orderUnknown, notSeenToBeOther},
	} {
		e := evidence.Experiment{Runs: 1, Failed: x.failed}
		notRemoved(&e, []orderState{x.state})
		if e.Undecided != x.want {
			t.Errorf("%s: %q, want %q", x.name, e.Undecided, x.want)
		}
	}
}

// TestLookedFor: an arrival counts if the instruction accesses that memory, and any other thread may
// make the access that the failing run lacks.
func TestLookedFor(t *testing.T) {
	in, err := x86.Decode([]byte{0x48, 0x89, 0x10}, 0x1000) // mov [rax], rdx
	if err != nil {
		t.Fatal(err)
	}
	a := &lookedFor{thread: 2, inst: in, addr: 0x5004, size: 4}
	for address, want := range map[uint64]bool{0x5000: true, 0x5004: true, 0x4ffc: false, 0x5008: false} {
		var regs image.Registers
		regs.Set(image.RAX, address)
		if got := a.accesses(&regs); got != want {
			t.Errorf("8 bytes at %#x: %v", address, got)
		}
	}
	missing := &lookedFor{not: 2}
	if !a.by(2) || a.by(3) || missing.by(2) || !missing.by(3) {
		t.Error("the threads are not told apart")
	}
}
