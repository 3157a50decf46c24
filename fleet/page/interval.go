package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"diagnose/corpus"
	"diagnose/internal/wording"
)

// build is the runs of one version or commit.
type build struct {
	Name        string
	First, Last time.Time
	// Failed and Passed count its runs in the corpus: of a test, or of a cause's program, where
	// Failed are the failures of that cause and Passed all other runs.
	Failed, Passed int
}

// Rate is the part of its runs that failed, in percent, for people.
func (b build) Rate() string { return rate(b.Failed, b.Failed+b.Passed) }

// Runs counts its runs.
func (b build) Runs() string { return wording.Count(b.Failed+b.Passed, "run") }

func rate(failed, all int) string {
	if all == 0 {
		return "no run"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(failed)/float64(all))
}

// interval is where a failure began: after Good, at the latest with Bad. The builds are in the order
// of their first runs in the corpus, which need not be that of their commits.
type interval struct {

	// Bad is the first build that failed; nil: none did. Good is the last one before it with runs
	// of which none failed; nil: there is none.
	Bad, Good *build
	// Before and After sum up the runs before Bad, and those from it on.
	Before, After build
	// Luck is the probability that all runs before Bad passed by luck, at the rate of the runs
	// after the first failure; LuckKnown says that there are enough runs to tell.
	Luck      float64
	LuckKnown bool
}

// intervalOf finds the first build that failed. order has all runs, the earliest first.
func intervalOf(order []build, sinceFirst func() (failed, all int)) interval {
	var v interval
	for i := range order {
		b := &order[i]
		if v.Bad == nil && b.Failed > 0 {
			v.Bad = b
			if i > 0 {
				v.Good = &order[i-1]
			}
		}
		sum := &v.Before
		if v.Bad != nil {
			sum = &v.After
		}
		sum.Failed += b.Failed
		sum.Passed += b.Passed
	}
	if v.Bad == nil || v.Good == nil {
		return v
	}
	v.Luck, v.LuckKnown = luck(v.Before.Passed, sinceFirst)
	return v
}

// luck is the probability that n runs pass by chance at the rate of the runs after the first
// failure. That failure itself is left out: the runs before it were chosen by it. Of the share of
// failures and Laplace's estimate, which is never 0 nor 1, the lower one counts.
func luck(n int, sinceFirst func() (failed, all int)) (float64, bool) {
	failed, all := sinceFirst()
	if failed == 0 || all == 0 {
		return 0, false
	}
	p := min(float64(failed)/float64(all), float64(failed+1)/float64(all+2))
	return math.Pow(1-p, float64(n)), true
}

// LuckText is Luck for people.
func (v interval) LuckText() string {
	if v.Luck < 0.0001 {
		return "less than 0.01 %"
	}
	return fmt.Sprintf("%.2g %%", 100*v.Luck)
}

// run is one run, of a build, with whether it failed.
type run struct {
	build  string
	at     time.Time
	failed bool
}

// builds sums up runs by build, in the order of the first run of each. The runs are sorted by it.
func builds(runs []run) []build {
	slices.SortStableFunc(runs, func(a, b run) int { return a.at.Compare(b.at) })
	index := map[string]int{}
	var list []build
	for _, r := range runs {
		i, ok := index[r.build]
		if !ok {
			i = len(list)
			index[r.build], list = i, append(list, build{Name: r.build, First: r.at})
		}
		list[i].Last = r.at
		if r.failed {
			list[i].Failed++
		} else {
			list[i].Passed++
		}
	}
	slices.SortStableFunc(list, func(a, b build) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Name, b.Name)) })
	return list
}

// afterFirst counts the runs after the first one that failed. The runs are sorted.
func afterFirst(runs []run) (failed, all int) {
	i := slices.IndexFunc(runs, func(r run) bool { return r.failed })
	for _, r := range runs[i+1:] {
		all++
		if r.failed {
			failed++
		}
	}
	return failed, all
}

// bisect finds where a failure began in runs.
func bisect(runs []run) ([]build, interval) {
	order := builds(runs)
	return order, intervalOf(order, func() (int, int) { return afterFirst(runs) })
}

func labelled(key string) func(*corpus.Entry) string {
	return func(e *corpus.Entry) string { return e.Labels[key] }
}

// firstSeen finds in which build of a cause's program it began. Runs of an unknown build, and
// failures that are not diagnosed, say nothing of it.
func (st *state) firstSeen(c *cause, buildOf func(*corpus.Entry) string) interval {
	program := c.Entries[0].Program
	var runs []run
	for i := range st.entries {
		e := &st.entries[i]
		name := buildOf(e)
		if name == "" || e.Program != program || !e.Passed && clusterOf(e) == "" {
			continue
		}
		runs = append(runs, run{name, e.FailedAt, clusterOf(e) == c.Digest && !e.Passed})
	}
	if !slices.ContainsFunc(runs, func(r run) bool { return r.failed }) {
		return interval{}
	}
	_, v := bisect(runs)
	return v
}
