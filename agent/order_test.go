package agent_test

import "testing"

// Addresses follow from the order of the calls alone: not from thread ids,
// address randomisation or time. A replay needs that.
func TestSupportOrder(t *testing.T) {
	library := supportAgent(t, "gcc")
	program := supportBuild(t, "gcc", "-O1", "support_order.c")
	digest := func(seed string) string {
		got := supportStart(t, library, "", program, seed)
		got.check(t, 0)
		return got.stdout
	}
	first := digest("1")
	for range 4 {
		if again := digest("1"); again != first {
			t.Errorf("the same order of calls gave other addresses: %s, then %s", first, again)
		}
	}
	if other := digest("2"); other == first {
		t.Error("another order of calls gave the same addresses")
	}
}
