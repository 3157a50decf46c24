package driver

import (
	"testing"

	"diagnose/image"
)

// TestEndsOfManyThreads bounds all walks together, but for the thread under
// judgement.
func TestEndsOfManyThreads(t *testing.T) {
	for _, x := range []struct{ threads, limit, top int }{
		{1, 1 << 20, 100}, {200, 1 << 22 / 200, 100}, {1 << 15, 256, 32}, {1 << 16, 256, 20},
	} {
		p := &image.Process{Threads: make([]image.Thread, x.threads+1)}
		a := &analysis{process: p, thread: &p.Threads[0]}
		if o := a.endsOf(&p.Threads[0]); o != ends {
			t.Errorf("of %d threads, that under judgement: %+v", x.threads, o)
		}
		p.Threads = p.Threads[:x.threads]
		a.thread = nil
		if o := a.endsOf(&p.Threads[0]); o.Limit != x.limit || o.Top != x.top {
			t.Errorf("of %d threads: %+v, want a limit of %d and %d at the top", x.threads, o, x.limit, x.top)
		}
	}
}

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
