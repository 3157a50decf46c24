package driver

import "testing"

func TestWaitingText(t *testing.T) {
	const variable = "waits for condition variable "
	for _, c := range []struct {
		waiting []string
		want    string
	}{
		{[]string{variable + "0x10 `a`"}, variable + "0x10 `a`"},
		{[]string{variable + "0x10 `a`", variable + "0x10 `a`"}, "wait for condition variable 0x10 `a`"},
		{[]string{variable + "0x10 `a`", "", variable + "0x20"}, "wait for condition variable 0x10 `a` and 0x20"},
		{[]string{variable + "0x10", variable + "0x20", variable + "0x30", variable + "0x40", variable + "0x50"},
			"wait for condition variable 0x10, 0x20, 0x30 and 2 others"},
		{[]string{variable + "0x10", "waits for the end of thread 2"}, "wait for condition variable 0x10; wait for the end of thread 2"},
		{[]string{"waits for mutex 0x10, whose owner is not recorded", "waits for mutex 0x20"},
			"wait for mutex 0x10, whose owner is not recorded; wait for mutex 0x20"},
	} {
		a := &analysis{waiting: c.waiting}
		g := &group{}
		for i := range c.waiting {
			g.indexes = append(g.indexes, i)
		}
		if got := a.waitingText(g); got != c.want {
			t.Errorf("%q: got %q, want %q", c.waiting, got, c.want)
		}
	}
}
