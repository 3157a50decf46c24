package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
	"diagnose/patterns"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// flowRace is a race over a hand-written log, whose failing thread 2 loaded its bad pointer from a variable.
func flowRace(text, cell string) *race {
	log := accesslog.Log("run failed\n" + text)
	c := &evidence.Case{}
	w := &work{Input: Input{Case: c}}
	for i := range log.Variables {
		if log.Variables[i].Name == cell {
			w.Blame = &staticscan.Blame{Cell: &log.Variables[i].Address}
		}
	}
	manifest := &record.Manifest{}
	manifest.Outcome.Thread = 2
	return &race{work: w, failing: []traced{{log: log, rec: &record.Recording{Manifest: manifest}}}}
}

// TestFlow: the values of a check are those that it reads, and what the code that stored them had read;
// what another thread counts beside that has no part in it.
func TestFlow(t *testing.T) {
	r := flowRace(`main t1
t1 create t2 reader
t1 create t3 writer
t3 R source 1 @20
t3 W item 1->0 @21
t3 W stats 0->1 @22
t3 R later 1 @23
t2 W total 0->1 @10
t2 R item 0 @11
`, "item")
	f := r.flowOf(0)
	for name, want := range map[string]bool{"item": true, "source": true, "stats": false, "later": false, "total": false} {
		if f.reach[name] != want {
			t.Errorf("%s reaches the check: %v", name, f.reach[name])
		}
	}
	item, stats := &patterns.Candidate{Variables: []string{"item"}}, &patterns.Candidate{Variables: []string{"stats"}}
	if !f.direct(item) || f.direct(stats) || f.direct(&patterns.Candidate{Variables: []string{"source"}}) {
		t.Error("what the check itself reads is not told from what leads there")
	}
	pair := &patterns.Candidate{Variables: []string{"item", "stats"}}
	source := &patterns.Candidate{Variables: []string{"source"}}
	proves := func(c *patterns.Candidate, turned bool) bool {
		claim := evidence.Event{Thing: namesText(c.Variables), At: evidence.Moment{Thread: 3, Ordinal: 1}}
		cause := evidence.Cause{Proof: evidence.Replayed, Experiments: []evidence.Experiment{
			{Control: true, Expect: true, Failed: 1, Runs: 1},
			{Runs: 1, Change: &claim, Check: &evidence.FailingCheck{Recorded: 1, Arrivals: 1, Again: 1, After: evidence.CheckedValue{Good: true}, Inputs: f.inputs(c, turned)}},
		}}
		return cause.Prove(claim) == nil
	}
	if !proves(item, false) || !proves(pair, false) || proves(stats, false) || !proves(source, false) {
		t.Errorf("item %v, item and stats %v, stats %v, source %v", proves(item, false), proves(pair, false), proves(stats, false), proves(source, false))
	}
	if !proves(item, true) || !proves(pair, true) || proves(source, true) {
		t.Errorf("of threads that were turned away: item %v, item and stats %v, source %v", proves(item, true), proves(pair, true), proves(source, true))
	}
	if r.Blame = nil; r.flowOf(0).inputs(stats, false) != nil {
		t.Error("inputs are told of a check that is not known")
	}
}

// TestUnrelated: two explanations are of different things only if they share neither variable nor code.
func TestUnrelated(t *testing.T) {
	r := &comparison{race: flowRace(`main t1
t1 create t2 reader
t1 create t3 writer
t3 W item 1->0 @21
t3 W stats 0->1 @22
t2 R item 0 @11
`, "item")}
	log := r.failing[0].log
	for i := range log.Contexts {
		log.Contexts[i].Site.Function = log.Contexts[i].Key
	}
	a := &patterns.Candidate{Variables: []string{"item"}, Accesses: []int{0, 2}}
	b := &patterns.Candidate{Variables: []string{"stats"}, Accesses: []int{1}}
	if !r.unrelated(a, b) || r.unrelated(a, a) {
		t.Error("other variables in other functions are unrelated, the same are not")
	}
	log.Contexts[log.Accesses[1].Context].Site.Function = log.Contexts[log.Accesses[0].Context].Site.Function
	if r.unrelated(a, b) {
		t.Error("accesses in one function are related")
	}
}

// TestNearest: what the check itself reads comes before what helps as well, unless that leads to the check
// and says more.
func TestNearest(t *testing.T) {
	r := flowRace(`main t1
t1 create t2 reader
t1 create t3 writer
t3 RW count 2->1 @20
t3 W item 1->0 @21
t3 W stats 0->1 @22
t2 R item 0 @11
`, "item")
	r.found = &patterns.Result{Candidates: []patterns.Candidate{
		{Variables: []string{"count"}, Accesses: []int{0, 0, 0}},
		{Variables: []string{"stats"}, Accesses: []int{2, 2, 2}},
		{Variables: []string{"item"}, Accesses: []int{1, 3}},
	}}
	tried := map[*patterns.Candidate]*tested{}
	var list []*tested
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		x := &tested{candidate: c, cured: true, cures: 2}
		tried[c], list = x, append(list, x)
	}
	nearest := func(found *tested) (*tested, error) {
		x := &comparison{r, found, tried, r.flowOf(0)}
		err := x.nearest()
		return x.found, err
	}
	for found, want := range map[int]int{0: 0, 1: 2, 2: 2} {
		if got, err := nearest(list[found]); err != nil || got != list[want] {
			t.Errorf("%v: %v, %v", list[found].candidate.Variables, got.candidate.Variables, err)
		}
	}
	// An order that says no less.
	if list[0].cures = 1; list[0].says() != list[2].says() {
		t.Fatalf("%d and %d", list[0].says(), list[2].says())
	}
	if got, _ := nearest(list[0]); got != list[2] {
		t.Errorf("of equal ones it is %v", got.candidate.Variables)
	}
}

// TestOnlyBehind: that the other context is first does not help, also where the run that failed was not
// seen to have the other order. Then who is first may be the cause.
func TestOnlyBehind(t *testing.T) {
	for _, x := range []struct {
		first  bool
		failed int
		want   bool
	}{{true, 1, true}, {false, 1, false}, {true, 0, false}} {
		found := &tested{candidate: &patterns.Candidate{}, cured: true, cures: 1}
		(&race{}).judge(found, order{first: x.first}, evidence.Experiment{Runs: 1, Failed: x.failed, Undecided: notSeenToBeOther})
		if found.onlyBehind != x.want || found.experiments[0].Undecided != notSeenToBeOther {
			t.Errorf("%+v: %v, %q", x, found.onlyBehind, found.experiments[0].Undecided)
		}
	}
}
