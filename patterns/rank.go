package patterns

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"diagnose/evidence"
)

// measure names what ranks.
func measure(failing, passing int) string {
	if passing == 0 {
		return "orders that no serial execution has, by their distance from the failure (there is no passing run)"
	}
	return fmt.Sprintf("F1, the harmonic mean of precision and recall, over %s failing and %s passing", runs(failing), runs(passing))
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// f1 is how well having the pattern predicts that a run fails: precision is the
// part of the runs with it that failed, recall the part of the failing runs that
// has it.
func (c *Candidate) f1() float64 {
	precision := float64(c.FailingRuns) / float64(c.FailingRuns+c.PassingRuns)
	recall := float64(c.FailingRuns) / float64(c.FailingOf)
	return 2 * precision * recall / (precision + recall)
}

// near is in (0, 1], higher for what is closer to the run's end.
func near(distance int) float64 { return 1 / (1 + math.Log2(float64(max(distance, 1)))/8) }

// The classes of candidates, by how much they explain.
const (
	classLockOrder = iota // a deadlock that happened
	classThree
	classPair
	classReversed
	classTwo
	classApart
	classWeak // without a passing run: what correct programs do as well
	classOrdered
)

func (c *Candidate) class(withPassing bool) int {
	switch {
	case c.Ordered != "":
		return classOrdered
	case c.Pattern == evidence.PatternLockOrder:
		return classLockOrder
	case !withPassing && (c.Apart || len(c.Accesses) == 2):
		return classWeak
	case c.Apart:
		return classApart
	case c.Pattern == evidence.PatternPair:
		return classPair
	case len(c.Accesses) == 3:
		return classThree
	case c.Reversed:
		return classReversed
	}
	return classTwo
}

// Suspicious reports whether the order may be the cause for all that is known:
// it is not enforced, and not what correct programs do as well.
func (c *Candidate) Suspicious() bool { return c.suspicion < classWeak }

func (f *finder) rank() {
	list := f.result.Candidates
	for i := range list {
		c := &list[i]
		c.suspicion = c.class(len(f.passing) > 0)
		c.Score = c.f1()
		if len(f.passing) == 0 {
			c.Score = near(c.Distance)
			if c.suspicion >= classWeak {
				c.Score /= 4
			}
		}
	}
	slices.SortFunc(list, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(bit(a.suspicion == classOrdered), bit(b.suspicion == classOrdered)),
			cmp.Compare(tier(&b, len(f.passing)), tier(&a, len(f.passing))),
			cmp.Compare(a.Closeness, b.Closeness),
			cmp.Compare(a.suspicion, b.suspicion),
			cmp.Compare(bit(b.changed), bit(a.changed)),
			cmp.Compare(a.Distance, b.Distance),
			cmp.Compare(a.Key, b.Key),
		)
	})
	f.result.Candidates = list[:min(len(list), f.opts.Most)]
}

// tier is what comes before everything else: the score, where runs were compared,
// and whether the failure is explained at all.
func tier(c *Candidate, passing int) float64 {
	if passing == 0 {
		return float64(bit(c.Suspicious()))
	}
	return c.Score
}
