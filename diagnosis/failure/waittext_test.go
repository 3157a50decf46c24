package failure

import (
	"testing"

	"diagnose/evidence"
)

func TestJoinWaits(t *testing.T) {
	variable := func(object string) WaitText { return WaitText{Kind: evidence.WaitCondition, Object: object} }
	end := WaitText{Object: "the end of thread 2"}
	odd := WaitText{Kind: evidence.WaitMutex, Object: "0x10", Note: "whose owner is not recorded"}
	for _, c := range []struct {
		waits []WaitText
		want  string
	}{
		{[]WaitText{{}}, ""},
		{[]WaitText{variable("0x10 `a`")}, "waits for condition variable 0x10 `a`"},
		{[]WaitText{variable("0x10 `a`"), variable("0x10 `a`")}, "wait for condition variable 0x10 `a`"},
		{[]WaitText{variable("0x10 `a`"), {}, variable("0x20")}, "wait for condition variable 0x10 `a` and 0x20"},
		{[]WaitText{variable("0x10"), variable("0x20"), variable("0x30"), variable("0x40"), variable("0x50")},
			"wait for condition variable 0x10, 0x20, 0x30 and 2 others"},
		{[]WaitText{variable("0x10"), end}, "wait for condition variable 0x10; wait for the end of thread 2"},
		{[]WaitText{odd, {Kind: evidence.WaitMutex, Object: "0x20"}}, "wait for mutex 0x10, whose owner is not recorded; wait for mutex 0x20"},
		{[]WaitText{odd, variable("0x1"), end, variable("0x2"), variable("0x3")},
			"wait for mutex 0x10, whose owner is not recorded; wait for condition variable 0x1; wait for the end of thread 2; and 2 others"},
	} {
		if got := JoinWaits(c.waits, len(c.waits)); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.waits, got, c.want)
		}
	}
}
