package verdict

import (
	"slices"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
	"diagnose/replay"
)

// planned plans the first candidate of a failing and a passing run.
func planned(t *testing.T, fails, passes string) []order {
	t.Helper()
	texts := []*accesslog.Text{accesslog.Parse("run failed\n" + fails), accesslog.Parse(passes)}
	runs, err := delta.Align([]*evidence.AccessLog{texts[0].Log}, []*evidence.AccessLog{texts[1].Log})
	if err != nil {
		t.Fatal(err)
	}
	found := patterns.Find(delta.Compare(runs), patterns.Options{})
	if len(found.Candidates) == 0 {
		t.Fatal("no candidate")
	}
	var list []*run
	for _, text := range texts {
		list = append(list, &run{log: text.Log, signals: func(a *evidence.Access) (arrivals []uint64, last uint64) {
			for _, e := range text.Events {
				if e.Thread != a.Thread {
					continue
				}
				if last = e.Ordinal; e.What == "signal" {
					arrivals = append(arrivals, e.Ordinal)
				}
			}
			return arrivals, last
		}})
	}
	orders, err := plan(&found.Candidates[0], list[0], list[1])
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

// TestPlanThreads: who comes between is kept back with all of its critical
// section, and with what its function did to the word before; then the other.
func TestPlanThreads(t *testing.T) {
	const head = "main t1\nt1 create t2 a\nt1 create t3 b\n"
	orders := planned(t, head+`
t2 R x 1 @10
t3 lock L
t3 R x 1 @20
t3 event
t3 W x 1->2 @21
t3 unlock L
t2 event
t2 R x 2 @11
t2 event
`, head+"t2 R x 1 @10\nt2 event\nt2 R x 1 @11\nt3 lock L\nt3 R x 1 @20\nt3 event\nt3 W x 1->2 @21\n")
	want := []replay.Hold{
		{Thread: 3, Ordinal: 2, Until: replay.EventOf{Thread: 2, Ordinal: 2}},
		{Thread: 2, Ordinal: 1, Until: replay.EventOf{Thread: 3, Ordinal: 3}},
	}
	var got []replay.Hold
	for _, o := range orders[:2] {
		got = append(got, o.holds...)
		if o.expect || !o.failing {
			t.Errorf("%s: expects %v", o.what, o.expect)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPlanBetween: in a passing run the one is stopped between its accesses, without
// the lock that the other needs; who comes too early there has to wait first.
func TestPlanBetween(t *testing.T) {
	const (
		head   = "main t1\nt1 create t2 a\nt1 create t3 b\n"
		first  = "t2 lock L\nt2 R x 1 @10\nt2 unlock L\n"
		second = "t2 event\nt2 lock L\nt2 R x 1 @11\nt2 unlock L\n"
		other  = "t3 lock L\nt3 W x 1->1 @21\nt3 unlock L\n"
	)
	stops := replay.Hold{Thread: 2, Ordinal: 4, Until: replay.EventOf{Thread: 3, Ordinal: 2}}
	waits := replay.Hold{Thread: 3, Ordinal: 2, Until: replay.EventOf{Thread: 2, Ordinal: 2}}
	for _, x := range []struct {
		passes string
		want   []replay.Hold
	}{
		{head + first + second + other, []replay.Hold{stops}},
		{head + other + first + second, []replay.Hold{waits, stops}},
	} {
		orders := planned(t, head+first+other+second, x.passes)
		last := orders[len(orders)-1]
		if last.failing || !last.expect || !slices.Equal(last.holds, x.want) || !orders[len(orders)-2].control {
			t.Errorf("%+v, want %+v", last, x.want)
		}
	}
}

// TestPlanSignals: a signal comes behind the accesses that it came between. One
// that came too late is made to come as late in the passing run.
func TestPlanSignals(t *testing.T) {
	orders := planned(t, "main t1\nt1 R x 1 @10\nt1 signal 14\nt1 W x 1->2 @30\nt1 return\nt1 R x 2 @11\nt1 event\n",
		"main t1\nt1 R x 1 @10\nt1 R x 1 @11\nt1 signal 14\nt1 W x 1->2 @30\nt1 return\n")
	if d := orders[0].delays; len(d) != 1 || d[0].At.Ordinal != 2 || d[0].Until != 4 || orders[0].expect {
		t.Errorf("%+v", orders[0])
	}
	orders = planned(t, "main t1\nt1 R x 1 @10\nt1 signal 14\nt1 W x 1->2 @30\nt1 return\n",
		"main t1\nt1 signal 14\nt1 W x 1->2 @30\nt1 return\nt1 event\nt1 R x 2 @10\nt1 event\n")
	last := orders[len(orders)-1]
	if last.failing || !last.expect || len(last.delays) != 1 || last.delays[0].At.Ordinal != 2 || last.delays[0].Until != 5 || !strings.Contains(last.what, "passing run") {
		t.Errorf("%+v", last)
	}
	if !orders[0].weak || !orders[1].control {
		t.Errorf("%+v", orders[:2])
	}
}
