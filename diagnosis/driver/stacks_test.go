package driver

import (
	"fmt"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// TestEndsOfManyThreads bounds all walks together, except that of the thread under judgement.
func TestEndsOfManyThreads(t *testing.T) {
	for _, x := range []struct{ threads, limit, top int }{
		{1, 1 << 20, 100}, {200, 1 << 22 / 200, 100}, {1 << 15, 256, 32}, {1 << 16, 256, 20},
	} {
		p := &image.Process{Threads: make([]image.Thread, x.threads+1)}
		a := &stoppedProcess{process: p, thread: &p.Threads[0]}
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
		a := &stoppedProcess{waiting: c.waiting}
		g := &group{}
		for i := range c.waiting {
			g.indexes = append(g.indexes, i)
		}
		if got := a.waitingText(g); got != c.want {
			t.Errorf("%q: got %q, want %q", c.waiting, got, c.want)
		}
	}
}

// TestParted takes the threads of a deadlock out of a group; the others stay
// together.
func TestParted(t *testing.T) {
	const many = 200
	threads := make([]image.Thread, many)
	a := &stoppedProcess{walked: make([]unwind.Stack, many)}
	g := &group{}
	for i := range threads {
		threads[i].Ref.TID = 1000 + i
		a.walked[i].Stopped = fmt.Sprint(i)
		g.threads, g.indexes = append(g.threads, &threads[i]), append(g.indexes, i)
	}
	a.stacks = []*group{g}
	edges := []evidence.WaitEdge{{Waiter: threads[0].Ref}, {Waiter: threads[7].Ref}}
	a.unfold([]evidence.Finding{{Kind: evidence.FindingDeadlock, Wait: edges}})
	if len(a.stacks) != 3 {
		t.Fatalf("%d groups", len(a.stacks))
	}
	for i, want := range []struct {
		first, threads int
	}{{0, 1}, {7, 1}, {1, many - 2}} {
		if g := a.stacks[i]; g.indexes[0] != want.first || len(g.threads) != want.threads || g.stack.Stopped != fmt.Sprint(want.first) {
			t.Errorf("group %d: threads %v with the stack of %s, want %+v", i, g.indexes, g.stack.Stopped, want)
		}
	}
}
