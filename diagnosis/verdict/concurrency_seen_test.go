package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
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
	} {
		if got := x.look.state(x.unbroken); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
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
