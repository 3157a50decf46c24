package patterns

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"diagnose/internal/wording"
)

// measure names the ranking measure.
func measure(failing, passing int) string {
	if passing == 0 {
		return "orders that no serial execution has, by their distance from the failure (there is no passing run)"
	}
	return fmt.Sprintf("F1, the harmonic mean of precision and recall, over %s failing and %s passing", wording.Count(failing, "run"), wording.Count(passing, "run"))
}

// f1 is how well the pattern predicts that a run fails: precision is the
// fraction of the runs with it that failed, recall the fraction of the failing
// runs that have it.
func f1(failing, passing, of int) float64 {
	precision := float64(failing) / float64(failing+passing)
	recall := float64(failing) / float64(of)
	return 2 * precision * recall / (precision + recall)
}

// Chance is the probability that an order which has nothing to do with the failure is in as many of the failing runs as this one, or in
// more, if the runs that have it were spread over all of them by chance (Fisher's exact test, one-sided). It is 1 without passing runs.
func (c *Candidate) Chance() float64 {
	having, of := c.FailingRuns+c.PassingRuns, c.FailingOf+c.PassingOf
	sum := 0.0
	for n := c.FailingRuns; n <= min(having, c.FailingOf); n++ {
		if having-n <= c.PassingOf {
			sum += math.Exp(choices(c.FailingOf, n) + choices(c.PassingOf, having-n) - choices(of, having))
		}
	}
	return min(sum, 1)
}

// choices is the logarithm of the number of ways to choose k of n.
func choices(n, k int) float64 {
	log := func(n int) float64 {
		v, _ := math.Lgamma(float64(n + 1))
		return v
	}
	return log(n) - log(k) - log(n-k)
}

// near is in (0, 1], higher for accesses closer to the run's end.
func near(distance int32) float64 { return 1 / (1 + math.Log2(float64(max(distance, 1)))/8) }

// coarse maps closenesses to the same number if they differ only by the order
// in which the failing code reads its variables.
func coarse(closeness int32) int { return bits.Len32(uint32(closeness) / 4) }

// class orders candidates of one score and variable by how much they explain.
type class uint8

const (
	classDeadlock class = iota // one that happened
	classThree
	classUnset // read before it has a value, which passing runs never do
	classPair
	classReversed
	classTwo
	classApart
	classTentative // without a passing run: a handler's, or one by which a bad value was read too early; an experiment decides
	classWeak      // without a passing run: an order that correct programs have too
	classOrdered
)

func (e *entry) classOf(withPassing bool) class {
	switch {
	case e.ring != nil && (e.ring.waiting || withPassing):
		return classDeadlock
	case e.ring != nil:
		return classWeak
	case !e.seen.free || e.locking.never:
		return classOrdered
	case !withPassing && (e.early || e.handled && (e.apart || e.accesses == 2)):
		return classTentative
	case !withPassing && (e.apart || e.accesses == 2):
		return classWeak
	case e.apart:
		return classApart
	case e.unset && e.reversed:
		return classUnset
	case e.key.shape == shapePair:
		return classPair
	case e.accesses == 3:
		return classThree
	case e.reversed:
		return classReversed
	}
	return classTwo
}

// Suspicious reports whether, as far as known, the order may be the cause: it
// is not enforced, and correct programs do not have it.
func (c *Candidate) Suspicious() bool { return c.class < classTentative }

// Tentative reports whether correct programs have the order too, but an experiment can decide
// whether it is the cause: a signal can arrive at any other place, and a read can wait for the store.
func (c *Candidate) Tentative() bool { return c.class == classTentative }

// scoreOf is how likely an entry explains the failure, without the other
// criteria of keepLikeliest.
func (f *finder) scoreOf(e *entry) float64 {
	if len(f.passing) > 0 {
		return f1(int(e.failing), int(e.passing), len(f.failing))
	}
	score := near(e.distance)
	if e.class >= classWeak {
		score /= 4
	}
	return score
}

// keepLikeliest sorts the entries, the likeliest first, and drops the excess
// ones.
func (f *finder) keepLikeliest() {
	slices.SortFunc(f.entries, func(a, b entry) int {
		return cmp.Or(
			cmp.Compare(bit(a.class == classOrdered), bit(b.class == classOrdered)),
			cmp.Compare(f.tier(&b), f.tier(&a)),
			cmp.Compare(bit(a.vague), bit(b.vague)),
			cmp.Compare(coarse(a.closeness), coarse(b.closeness)),
			cmp.Compare(a.class, b.class),
			cmp.Compare(bit(b.changed), bit(a.changed)),
			cmp.Compare(a.distance, b.distance),
			a.compareKeys(&b),
			cmp.Compare(a.run, b.run),
		)
	})
	f.entries = f.entries[:min(len(f.entries), f.opts.Most)]
}

func (e *entry) compareKeys(other *entry) int {
	switch {
	case e.ring != nil && other.ring != nil:
		return cmp.Compare(e.ring.key, other.ring.key)
	case e.key.less(&other.key):
		return -1
	case other.key.less(&e.key):
		return 1
	}
	return 0
}

// tier is the first sort key: the score, if runs were compared, and whether the
// failure is explained at all.
func (f *finder) tier(e *entry) float64 {
	if len(f.passing) == 0 {
		return float64(bit(e.class < classWeak))
	}
	return e.score
}
