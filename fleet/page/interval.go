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

// runs are one or more runs of a build that were made at a time.
type runs struct {
	build          string
	at             time.Time
	failed, passed int
}

func (r runs) anyFailed() bool { return r.failed > 0 }

// single is one run.
func single(build string, at time.Time, failed bool) runs {
	if failed {
		return runs{build, at, 1, 0}
	}
	return runs{build, at, 0, 1}
}

// builds sums up runs by build, in the order of the first run of each. It sorts the runs by time.
func builds(all []runs) []build {
	slices.SortStableFunc(all, func(a, b runs) int { return a.at.Compare(b.at) })
	index := map[string]int{}
	var list []build
	for _, r := range all {
		i, ok := index[r.build]
		if !ok {
			i = len(list)
			index[r.build], list = i, append(list, build{Name: r.build, First: r.at})
		}
		list[i].Last = r.at
		list[i].Failed += r.failed
		list[i].Passed += r.passed
	}
	slices.SortStableFunc(list, func(a, b build) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Name, b.Name)) })
	return list
}

// afterFirst counts the runs after the first one that failed; of those that were made together with
// it, all others. The runs are sorted.
func afterFirst(all []runs) (failed, count int) {
	i := slices.IndexFunc(all, runs.anyFailed)
	for _, r := range all[i:] {
		failed += r.failed
		count += r.failed + r.passed
	}
	return failed - 1, count - 1
}

// bisect finds where a failure began. One of the runs failed.
func bisect(all []runs) ([]build, interval) {
	order := builds(all)
	return order, intervalOf(order, func() (int, int) { return afterFirst(all) })
}

func labelled(key string) func(*corpus.Entry) string {
	return func(e *corpus.Entry) string { return e.Labels[key] }
}

// firstSeen finds in which build of a cause's program it began. Runs of an unknown build, and
// failures that are not diagnosed, say nothing of it.
func (st *state) firstSeen(c *cause, buildOf func(*corpus.Entry) string) interval {
	program := c.Entries[0].Program
	var all []runs
	for i := range st.entries {
		e := &st.entries[i]
		name := buildOf(e)
		if name == "" || e.Program != program || !e.Passed && clusterOf(e) == "" {
			continue
		}
		all = append(all, single(name, e.FailedAt, clusterOf(e) == c.Digest && !e.Passed))
	}
	if !slices.ContainsFunc(all, runs.anyFailed) {
		return interval{}
	}
	_, v := bisect(all)
	return v
}
