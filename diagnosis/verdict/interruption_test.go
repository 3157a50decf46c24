package verdict

import (
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/replay/record/eventlog"
)

// interrupted is an order in a log: the indices of its accesses in time.
func interrupted(t *testing.T, log string, accesses ...int) *interruption {
	t.Helper()
	text := accesslog.Parse("run failed\n" + log)
	x := &interruption{run: &traced{log: text.Log}, signal: &eventlog.Event{Object: 14, Thread: 1}, handled: -1, later: -1}
	if err := x.watch(accesses); err != nil {
		t.Fatal(err)
	}
	handled := middle(text.Log, accesses)
	x.handled = slices.Index(x.list, handled)
	x.handlerPC = x.at(x.handled).PC
	if last := accesses[len(accesses)-1]; last != handled {
		x.later = slices.Index(x.list, last)
	}
	for _, e := range text.Events {
		if e.What == "signal" && e.Ordinal <= text.Log.Accesses[handled].Ordinal {
			x.arrivals = []uint64{e.Ordinal}
		}
	}
	x.since(&text.Log.Accesses[accesses[0]])
	for x.began = x.handled; x.began > 0 && x.at(x.began-1).Handler != 0 && x.at(x.began-1).Ordinal >= x.arrivals[0]; {
		x.began--
	}
	return x
}

// The handler reads and writes; the code reads in a loop before.
const readTwice = `main t1
t1 R x 1 @10
t1 R x 1 @11
t1 R x 1 @11
t1 event
t1 signal 14
t1 R x 1 @30
t1 W x 1->2 @31
t1 return
t1 R x 2 @11
t1 event
`

// TestFirsts: the last access of each instruction since the signal's last arrival may be the
// first of the order, the nearest first.
func TestFirsts(t *testing.T) {
	x := interrupted(t, readTwice, 2, 4, 5)
	if got := x.firstsOf(); !slices.Equal(got, []int{2, 0}) {
		t.Errorf("%v", got)
	}
	if x.began != 3 || x.needed() != 4 {
		t.Errorf("the handler's accesses begin at %d, and %d come without it", x.began, x.needed())
	}
	x = interrupted(t, "main t1\nt1 R x 1 @9\nt1 event\nt1 signal 14\nt1 W x 1->1 @31\nt1 return\n"+readTwice[len("main t1\n"):], 4, 6, 7)
	if got := x.own; !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("since the last arrival: %v", got)
	}
}

// TestReadTooEarly: without the signal, code that reads before the handler writes reads the same.
// A failure that stays then does not speak against the order.
func TestReadTooEarly(t *testing.T) {
	for _, c := range []struct {
		name, log string
		accesses  []int
		want      bool
	}{
		{"read, then written", "main t1\nt1 R x 1 @10\nt1 event\nt1 signal 14\nt1 W x 1->2 @31\nt1 return\n", []int{0, 1}, true},
		{"written, then read", "main t1\nt1 W x 0->1 @10\nt1 event\nt1 signal 14\nt1 R x 1 @31\nt1 return\n", []int{0, 1}, false},
		{"written by both", "main t1\nt1 W x 0->1 @10\nt1 event\nt1 signal 14\nt1 W x 1->2 @31\nt1 return\n", []int{0, 1}, false},
		{"read again after the handler", readTwice, []int{2, 4, 5}, false},
	} {
		if got := interrupted(t, c.log, c.accesses...).readTooEarly(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestOrdered: what a replay's own accesses say of the order that was wanted.
func TestOrdered(t *testing.T) {
	x := interrupted(t, readTwice, 2, 4, 5)
	hits := func(pcs ...evidence.Addr) (list []seenHit) {
		for _, pc := range pcs {
			list = append(list, seenHit{pc: pc, kind: evidence.CodeRead})
		}
		return list
	}
	pc := func(n int) evidence.Addr { return x.at(n).PC }
	first, loop, reads, writes := pc(0), pc(1), pc(3), pc(4)
	before := x.before(0)
	for _, c := range []struct {
		what string
		p    func(*moved) string
		m    moved
		want string
	}{
		{"moved before the first read", before.ordered, moved{hits(reads, writes, first, loop, loop), 0}, ""},
		{"the first read came before all the same", before.ordered, moved{hits(first, reads, writes, loop), 0}, orderStayed},
		{"it is not read any more", before.ordered, moved{hits(reads, writes), 0}, noAccess},
		{"it never came", before.ordered, moved{hits(first, loop, loop), -1}, notRaised},
		{"delayed", x.orderedLater, moved{hits(first, loop, loop, loop, reads, writes), 4}, ""},
		{"delayed, and the last read is not made", x.orderedLater, moved{hits(first, loop, loop, reads, writes), 3}, noAccess},
		{"delayed, and the handler does not write", x.orderedLater, moved{hits(first, loop, loop, loop, reads), 4}, noAccess},
		{"never", x.orderedLater, moved{hits(first, loop, loop, loop), -1}, notRaised},
	} {
		if got := c.p(&c.m); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestOrderedUnreached: where the run ended in the handler, something has to come between
// the first access and the later signal.
func TestOrderedUnreached(t *testing.T) {
	x := interrupted(t, "main t1\nt1 W x 1->0 @10\nt1 event\nt1 signal 14\nt1 R x 0 @30\n", 0, 1)
	write, read := x.at(0).PC, x.at(1).PC
	other := evidence.Addr(0x99)
	if got := x.orderedLater(&moved{[]seenHit{{write, evidence.CodeWrite}, {read, evidence.CodeRead}}, 1}); got != orderStayed {
		t.Errorf("%q", got)
	}
	m := &moved{[]seenHit{{write, evidence.CodeWrite}, {other, evidence.CodeRead}, {other, evidence.CodeWrite}, {read, evidence.CodeRead}}, 3}
	if got := x.orderedLater(m); got != "" {
		t.Errorf("%q", got)
	}
	if got := x.following(&seenHit{write, evidence.CodeWrite}, m); got == nil || got.kind != evidence.CodeWrite {
		t.Errorf("%+v is between no two", got)
	}
}

// TestPatternOf names what was seen.
func TestPatternOf(t *testing.T) {
	kinds := map[byte]evidence.AccessCode{'R': evidence.CodeRead, 'W': evidence.CodeWrite, 'B': evidence.CodeReadWrite}
	for text, want := range map[string]evidence.PatternKind{
		"RWR": "RWR", "RWW": "RWW", "WWR": "WWR", "WRW": "WRW", "RBR": "RWR", "BRB": "WRW", "WRR": "", "RRR": "", "WWW": "",
		"-WR": "WR", "RW-": "RW", "WR-": "WR", "-RR": "",
	} {
		var hits [3]*seenHit
		for i := range hits {
			if k, ok := kinds[text[i]]; ok {
				hits[i] = &seenHit{kind: k}
			}
		}
		if got := patternOf(hits[0], hits[1], hits[2]); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestMomentOfHook: the arrivals at an instruction are counted from the last event on.
func TestMomentOfHook(t *testing.T) {
	x := interrupted(t, readTwice, 2, 4, 5)
	if at := x.hookAt(x.signal, 2, &moved{raised: -1}).At; at.Count != 2 || at.PC != x.at(2).PC || at.Ordinal != x.at(2).Ordinal {
		t.Errorf("%+v", at)
	}
}
