package verdict

import (
	"slices"
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
		list = append(list, &run{log: text.Log})
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

// TestPlanChecks: a thread is kept back from the pass on to which its access belongs, if the pass before is close by; and after its accesses.
func TestPlanChecks(t *testing.T) {
	const head = "main t1\nt1 create t2 a\nt1 create t3 b\n"
	orders := planned(t, head+`
t3 R x 0 @20
t3 event
t3 W x 0->1 @21
t3 event
t2 R x 1 @10
t3 R x 1 @20
t3 event
t3 W x 1->2 @21
t2 event
t2 R x 2 @11
t2 event
t3 event
`, head+"t2 R x 0 @10\nt2 event\nt2 R x 0 @11\nt3 R x 0 @20\nt3 event\nt3 W x 0->1 @21\n")
	until := orders[0].holds[0].Until
	if from := orders[0].holds[0]; from.Thread != 3 || from.Ordinal != 1 {
		t.Fatalf("%+v", orders[0])
	}
	want := []replay.Hold{{Thread: 3, Ordinal: 3, Until: until}, {Thread: 3, Ordinal: 5, Until: until}}
	var got []replay.Hold
	for i, c := range orders[0].checks {
		got = append(got, c.holds...)
		if c.kept != (i == 1) || !c.failing {
			t.Errorf("%+v", c)
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
