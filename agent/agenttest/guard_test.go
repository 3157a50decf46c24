package agenttest_test

import (
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/evidence"
)

// A guard names its object, also with a member's offset, and no other value
// does.
func TestGuardWord(t *testing.T) {
	b := agenttest.New()
	first := b.Small(64, 300)
	var objects []evidence.Addr
	for i := range 290 {
		objects = append(objects, b.Alloc(first+evidence.Addr(64*i), 40, agent.Call{}, agent.APIMalloc))
	}
	fresh := first + 64*295
	large := b.Large(64, 200000, 24, agent.Call{}, false)
	objects = append(objects, large, b.Large(64, 200000, 24, agent.Call{}, false))
	freshGuard := b.CanaryWord(fresh)
	h, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		word := b.CanaryWord(o)
		for _, offset := range []int64{0, 1, 8, -8, 1000, agent.GuardRange - 1, 1 - agent.GuardRange} {
			got, by, found, gaps := h.GuardWord(word + uint64(offset))
			if !found || got.Addr != o || by != offset || gaps.Count != 0 {
				t.Fatalf("%#x+%d: %v, %d, %v, %v, want the object at %v", word, offset, got.Addr, by, found, gaps, o)
			}
		}
		if got, err := h.CanaryWordOf(&agent.Object{Slot: b.Slot(o)}); err != nil || got != word {
			t.Errorf("the guard of %v is %#x, %v, want %#x", o, got, err, word)
		}
	}
	word := b.CanaryWord(large)
	for _, value := range []uint64{0, 1, ^uint64(0), word + agent.GuardRange, word ^ 1<<40, word &^ (1 << 63), freshGuard, 0x7fffffffe000, agent.FillWord(agent.Base+agent.OffObjects, uint64(large))} {
		if o, offset, found, _ := h.GuardWord(value); found {
			t.Errorf("%#x is taken for the guard of %v, %d", value, o.Addr, offset)
		}
	}
}
