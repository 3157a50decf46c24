package delta

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

func compare(t *testing.T, failing []string, passing ...string) *Delta {
	t.Helper()
	var f, p []*evidence.AccessLog
	for _, text := range failing {
		f = append(f, accesslog.Log("run failed\n"+text))
	}
	for _, text := range passing {
		p = append(p, accesslog.Log(text))
	}
	runs, err := Align(f, p)
	if err != nil {
		t.Fatal(err)
	}
	return Compare(runs)
}

// TestDifferences: each difference is one sentence, with the accesses that show
// it on both sides. Nothing is reported about equal properties.
func TestDifferences(t *testing.T) {
	const head = "main t1\nt1 create t2 worker\n"
	for _, c := range []struct {
		name           string
		fails, passes  string
		kind           Kind
		text           string
		failing, other int // accesses that show it
	}{{
		name: "order", kind: Order, failing: 2, other: 2,
		fails:  head + "t1 W x 0->0 @9\nt2 W x 0->0 @20\nt1 R x 0 @10\n",
		passes: head + "t2 W x 0->0 @20\nt1 W x 0->0 @9\nt1 R x 0 @10\n",
		text:   "main reads x at a.c:10 (main): in the failing run it sees what worker wrote at a.c:20 (worker), in passing ones what main wrote at a.c:9 (main)",
	}, {
		name: "nothing was written", kind: Order, failing: 1, other: 2,
		fails:  head + "t2 R x 0 @20\nt1 W x 0->0 @9\n",
		passes: head + "t1 W x 0->0 @9\nt2 R x 0 @20\n",
		text:   "worker reads x at a.c:20 (worker): in the failing run it sees the value before any write, in passing ones what main wrote at a.c:9 (main)",
	}, {
		name: "values", kind: Values, failing: 1, other: 1,
		fails: head + "t2 R x 1 @20\nt2 R x 70000 @20\n", passes: head + "t2 R x 1 @20\nt2 R x 2 @20\n",
		text: "worker reads x at a.c:20 (worker): the value is 0x11170 in the failing run, and 1 or 2 in passing ones",
	}, {
		name: "only failing", kind: OnlyFailing, failing: 1, other: 0,
		fails: head + "t1 R x 0 @9\nt1 signal 14\nt1 W x 0->0 @30\n", passes: head + "t1 R x 0 @9\n",
		text: "the handler of signal 14 writes x at a.c:30 (on_14) in the failing run, and in no passing one",
	}, {
		name: "only passing", kind: OnlyPassing, failing: 0, other: 1,
		fails: head + "t1 R x 0 @9\n", passes: head + "t1 R x 0 @9\nt2 W x 0->0 @21\n",
		text: "worker writes x at a.c:21 (worker) in the passing run, and in no failing one",
	}} {
		t.Run(c.name, func(t *testing.T) {
			d := compare(t, []string{c.fails}, c.passes)
			if len(d.Differences) != 1 {
				t.Fatalf("%d differences: %+v", len(d.Differences), d.Differences)
			}
			got := d.Differences[0]
			if got.Kind != c.kind || got.Text != c.text {
				t.Errorf("%s: %s", got.Kind, got.Text)
			}
			if len(got.Failing.Accesses) != c.failing || len(got.Passing.Accesses) != c.other {
				t.Errorf("shown by %v and %v", got.Failing.Accesses, got.Passing.Accesses)
			}
			if same := compare(t, []string{c.passes}, c.passes); len(same.Differences) != 0 {
				t.Errorf("of equal runs: %+v", same.Differences)
			}
		})
	}
}

// TestCounts: the number of a loop's iterations is no difference, and neither are
// the values of a counter, the numbers of threads, or which part of an array came
// first.
func TestCounts(t *testing.T) {
	loop := func(rounds int, thread string) string {
		var b strings.Builder
		b.WriteString("main t1\nt1 create " + thread + " worker\n")
		for i := range rounds {
			n := string(rune('0' + i%10))
			b.WriteString(thread + " W x " + n + "->" + n + " @20\n" + thread + " R x+8 " + n + " @21\n")
		}
		return b.String()
	}
	if d := compare(t, []string{loop(40, "t2")}, loop(90, "t7"), loop(12, "t3")); len(d.Differences) != 0 {
		t.Errorf("%+v", d.Differences)
	}
}

// TestCountsOfRuns: with several runs, the difference that separates them best
// comes first.
func TestCountsOfRuns(t *testing.T) {
	base := "main t1\nt1 R x 0 @9\n"
	d := compare(t, []string{base + "t1 W x 0->0 @30\n", base + "t1 W x 0->0 @30\nt1 W y 0->0 @40\n"}, base, base+"t1 W z 0->0 @50\n")
	if len(d.Differences) != 3 || !strings.Contains(d.Differences[0].Text, "in 2 of 2 failing runs") {
		t.Fatalf("%+v", d.Differences)
	}
	for _, other := range d.Differences[1:] {
		if !strings.Contains(other.Text, "in 1 of 2 failing runs") && !strings.Contains(other.Text, "in 1 of 2 passing runs") {
			t.Error(other.Text)
		}
	}
}

// TestCrowded: a place that reads from more places than are compared is
// counted, and one with as many as are compared is not; the text names few of
// them.
func TestCrowded(t *testing.T) {
	run := func(first, writers int) string {
		var b strings.Builder
		b.WriteString("main t1\n")
		for i := range writers {
			fmt.Fprintf(&b, "t1 W x 0->0 @%d\nt1 R x 0 @9\n", first+i)
		}
		return b.String()
	}
	onlyOrder := func(d *Delta) (list []Difference) {
		for _, one := range d.Differences {
			if one.Kind == Order {
				list = append(list, one)
			}
		}
		return list
	}
	d := compare(t, []string{run(1000, fewSources)}, run(1001, fewSources))
	if list := onlyOrder(d); len(list) != 1 || !strings.HasSuffix(list[0].Text, "it sees what main wrote at a.c:1000 (main), in passing ones what main wrote at a.c:1256 (main)") || len(d.Limits) != 0 {
		t.Errorf("%+v, limits: %+v", list, d.Limits)
	}
	for _, c := range [][2]int{{fewSources, fewSources + 1}, {fewSources + 1, fewSources}} {
		d = compare(t, []string{run(1000, c[0])}, run(1000, c[1]))
		if list := onlyOrder(d); len(list) != 0 || len(d.Limits) != 1 || d.Limits[0].Code != evidence.LimitCrowdedPlaces || d.Limits[0].Count != 1 {
			t.Errorf("%v: %+v, limits: %+v", c, list, d.Limits)
		}
	}
	list := onlyOrder(compare(t, []string{run(1000, 20)}, run(2000, 1)))
	if len(list) != 1 || len(list[0].Failing.Sources) != 20 || !strings.Contains(list[0].Text, "a.c:1007 (main) or what 12 other places wrote, in passing") {
		t.Errorf("%+v", list)
	}
}

func TestRefused(t *testing.T) {
	good := accesslog.Log("main t1\nt1 R x 0 @9\n")
	failed := accesslog.Log("run failed\nmain t1\nt1 R x 0 @9\n")
	broken := func(change func(*evidence.Access)) *evidence.AccessLog {
		log := accesslog.Log("main t1\nt1 R x 0 @9\n")
		change(&log.Accesses[0])
		return log
	}
	logs := func(l ...*evidence.AccessLog) []*evidence.AccessLog { return l }
	for _, c := range []struct {
		name             string
		failing, passing []*evidence.AccessLog
		want             string
	}{
		{"no failing run", nil, logs(good), "no log of a failing run"},
		{"a passing run that failed", logs(failed), logs(failed), "given as one that passed"},
		{"no such variable", logs(broken(func(a *evidence.Access) { a.Variable = 3 })), nil, "variable 3 of 1"},
		{"no such context", logs(broken(func(a *evidence.Access) { a.Context = -1 })), nil, "context -1 of 1"},
		{"no such locks", logs(broken(func(a *evidence.Access) { a.Locks = 9 })), nil, "lock set 9 of 1"},
		{"no such thread", logs(broken(func(a *evidence.Access) { a.Thread = 1 << 20 })), nil, "thread 1048576"},
	} {
		_, err := Align(c.failing, c.passing)
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if d := compare(t, []string{"main t1\nt1 R x 0 @9\n"}); len(d.Differences) != 0 || len(d.Failing) != 1 {
		t.Errorf("without a passing run: %+v", d)
	}
}
