package patterns

import (
	"math"
	"slices"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// TestRanking: with several runs, the pattern that predicts the failure comes
// first.
func TestRanking(t *testing.T) {
	noise := func(text string, other string) string {
		return text + "t1 create t4 noise\n" + other
	}
	racy := "t4 event\nt4 R m 0 @50\nt1 W m 0->1 @40\nt4 R m 1 @51\n"
	calm := "t4 R m 0 @50\nt4 R m 0 @51\nt1 W m 0->1 @40\n"
	r := find(t, []uint32{1, 1, 1}, noise(counterFails, racy), noise(counterFails, calm), noise(counterFails, racy),
		noise(counterPasses, racy), noise(counterPasses, calm), noise(counterPasses, calm))
	first := r.Candidates[0]
	if first.Pattern != evidence.PatternRWW || first.FailingRuns != 3 || first.PassingRuns != 0 || first.Score != 1 {
		t.Errorf("first: %+v", first)
	}
	i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Variables[0] == "m" && c.Pattern == evidence.PatternRWR })
	if i < 0 {
		t.Fatal("the noise is not there")
	}
	if c := r.Candidates[i]; c.FailingRuns != 2 || c.PassingRuns != 1 || c.Score >= 0.7 || c.Score <= 0.6 {
		t.Errorf("noise: %d failing, %d passing runs, score %v", c.FailingRuns, c.PassingRuns, c.Score)
	}
	if !strings.Contains(r.Measure, "3 runs failing and 3 runs passing") {
		t.Errorf("measure %q", r.Measure)
	}
}

// TestLoops: a loop of reads counts as one, and the number of its iterations
// changes nothing.
func TestLoops(t *testing.T) {
	text := func(rounds int, fails bool) string {
		poll := strings.Repeat("t2 R flag 0 @20\n", rounds)
		if fails {
			return "run failed\nmain t1\nt1 create t2 worker\n" + poll + "t1 W flag 0->1 @5\nt2 event\nt2 R flag 1 @22\n"
		}
		return "main t1\nt1 create t2 worker\n" + poll + "t2 event\nt2 R flag 0 @22\nt1 W flag 0->1 @5\n"
	}
	keys := func(rounds int) string {
		r := find(t, []uint32{2}, text(rounds, true), text(2*rounds+1, false))
		var keys []string
		for _, c := range r.Candidates {
			keys = append(keys, c.Key)
		}
		return strings.Join(keys, "\n")
	}
	if one, many := keys(1), keys(1000); one != many || one == "" {
		t.Errorf("one round:\n%s\nmany:\n%s", one, many)
	}
}

// TestLate: an access after the failing thread's last one is marked, and one
// that it read is not.
func TestLate(t *testing.T) {
	const text = `main t1
t1 create t2 display
t1 create t3 desk
t2 R ticket 1 @10
t3 lock L
t3 W ticket 1->0 @20
t3 unlock L
t2 event
t2 R ticket 0 @12
t3 lock L
t3 W ticket 0->2 @22
t3 unlock L
`
	const passes = "main t1\nt1 create t2 display\nt1 create t3 desk\nt2 R ticket 1 @10\nt2 event\nt2 R ticket 1 @12\nt3 W ticket 1->0 @20\nt3 W ticket 0->2 @22\n"
	for _, more := range []string{"", "t2 R ticket 2 @14\n"} {
		r := find(t, []uint32{2}, "run failed\n"+text+more, passes)
		for pattern, late := range map[evidence.PatternKind]bool{evidence.PatternRWR: false, evidence.PatternWRW: more == ""} {
			i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Pattern == pattern })
			if i < 0 {
				t.Fatalf("no %s", pattern)
			}
			if c := &r.Candidates[i]; c.Late != late {
				t.Errorf("%s at %s: late %v", pattern, r.lines(c), c.Late)
			}
		}
	}
}

// TestEarly: without a passing run, a read before a store is worth an experiment only where the value is known to be bad.
func TestEarly(t *testing.T) {
	const first, second = evidence.Addr(0x1000), evidence.Addr(0x2000)
	const create = "t1 create t2 setter\n"
	log := func(text string) *evidence.AccessLog {
		log := accesslog.Log("run failed\nmain t1\n" + text + "t1 R seen 1 @30\n")
		for i := range log.Variables {
			if log.Variables[i].Name == "price" {
				log.Variables[i].Address = first
			}
		}
		return log
	}
	for name, c := range map[string]struct {
		text  string
		early []evidence.Addr
		want  bool
	}{
		"a bad value":           {create + "t1 R price 0 @10\nt2 event\nt2 W price 0->7 @20\n", []evidence.Addr{first}, true},
		"not 0":                 {create + "t1 R price 4 @10\nt2 event\nt2 W price 4->7 @20\n", []evidence.Addr{first}, true},
		"of another variable":   {create + "t1 R price 0 @10\nt2 event\nt2 W price 0->7 @20\n", []evidence.Addr{second}, false},
		"nothing is known":      {create + "t1 R price 0 @10\nt2 event\nt2 W price 0->7 @20\n", nil, false},
		"before the thread was": {"t1 W price 0->3 @9\n" + create + "t1 R price 3 @10\nt2 event\nt2 W price 3->7 @20\n", []evidence.Addr{first}, true},
		"by the same thread":    {create + "t2 W price 0->3 @9\nt2 event\nt1 R price 3 @10\nt2 event\nt2 W price 3->7 @20\n", []evidence.Addr{first}, false},
		"by another thread":     {create + "t1 create t3 other\nt3 W price 0->3 @9\nt3 event\nt1 R price 3 @10\nt2 event\nt2 W price 3->7 @20\n", []evidence.Addr{first}, false},
	} {
		runs, err := delta.Align([]*evidence.AccessLog{log(c.text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := Find(delta.Compare(runs), Options{Threads: []uint32{1}, Early: c.early})
		got := slices.ContainsFunc(r.Candidates, func(c Candidate) bool {
			return c.Pattern == evidence.PatternRW && c.Variables[0] == "price" && c.Tentative()
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, c.want, r.Candidates)
		}
	}
}

// TestChance: by how many ways the runs can be dealt out, an order of each failing run and of no passing one is one of them.
func TestChance(t *testing.T) {
	for name, c := range map[string]struct {
		failing, of, passing, passingOf int
		want                            float64
	}{
		"no passing run":        {3, 3, 0, 0, 1},
		"one and two":           {1, 1, 0, 2, 1.0 / 3},
		"three and twenty":      {3, 3, 0, 20, 1.0 / 1771},
		"in a passing run, too": {3, 3, 1, 20, 20.0 / 8855},
		"in some failing ones":  {2, 3, 0, 2, 3.0 / 10},
		"in each of all":        {2, 2, 3, 3, 1},
	} {
		got := (&Candidate{FailingRuns: c.failing, FailingOf: c.of, PassingRuns: c.passing, PassingOf: c.passingOf}).Chance()
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestRecurs: a pattern that the same code has once more in the run is marked.
func TestRecurs(t *testing.T) {
	const lost = "t2 R count 0 @10\nt2 event\nt3 W count 0->1 @21\nt3 event\nt2 W count 1->1 @11\nt2 event\n"
	for times, want := range map[int]bool{1: false, 2: true} {
		text := "run failed\nmain t1\nt1 create t2 door\nt1 create t3 gate\n" + strings.Repeat(lost, times)
		r := find(t, []uint32{2}, text)
		i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Pattern == evidence.PatternRWW && !c.Apart })
		if i < 0 {
			t.Fatalf("%d times: no pattern: %+v", times, r.Candidates)
		}
		if got := r.Candidates[i].Recurs; got != want {
			t.Errorf("%d times: %v, want %v", times, got, want)
		}
	}
}
