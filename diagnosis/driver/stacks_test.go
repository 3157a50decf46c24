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
