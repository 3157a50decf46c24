package page

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

const introduction = `# Causes of bugs that were put into real programs

Made by ` + "`make truth`" + `; see bench/truth. A tool puts one bug at a random place of a real program from
Debian's sources. A mutant counts if it compiles, behaves like the original on some inputs of the
program's tests, and fails on another. The right answers are data: the first violation that
AddressSanitizer, MemorySanitizer or ThreadSanitizer reports on the same input, and the lines of the bug. An object may be known by the
line of the bug that allocates it, and of a signal that was taken out the condition is all there is to name. Where a thread
is not waited for any more, whatever its creator does after that place and before the thread does its part is the bug. A report is
judged by its typed fields: if it names causes by the first one, else by the failure and the
damage that it names. A twin is the original with the same input; nothing may be reported
on it.

- *right first*: the headline is the first violation or the bug
- *root in chain*: the story of the first cause contains the bug
- *in the report*: another part of the report names one of them
- *unknown*: no cause is named; *wrong*: another cause is named
- *not reproduced*: the program does not fail in this way: a core needs a signal
- *no report*: diagnose ended without a report, or not within a minute

`

// mutantsOf counts the mutants that results are of.
func mutantsOf(open []store.Result) int {
	named := map[string]bool{}
	for i := range open {
		named[fmt.Sprint(open[i].ID)] = true
	}
	return len(named)
}

// mostOfWay counts the results of the way with most of them. Those of the hold-out have one result a way, and no name.
func mostOfWay(hold []store.Result) (most int) {
	held := map[ways.Way]int{}
	for i := range hold {
		held[hold[i].Way]++
		most = max(most, held[hold[i].Way])
	}
	return most
}

// Write writes the whole table. mutants is how many the list has, by whether they are of the
// hold-out. The totals of the hold-out are those of an earlier page, if it has more of them.
func Write(w io.Writer, results []store.Result, mutants, held int, earlier *Earlier) error {
	p := &printer{w: w}
	p.printf("%s", introduction)
	open, hold := split(results)
	p.printf("%d mutants fail, %d of them in the hold-out. %d were judged.\n\n", mutants, held, mutantsOf(open)+max(mostOfWay(hold), earlier.Held))
	p.printf("## All but the hold-out\n\n")
	p.totals(open)
	p.printf("\n### By kind of bug, with a recording\n\n")
	p.by("bug", only(open, ways.Recording), func(r *store.Result) string { return r.Operator })
	p.printf("\n### By level of optimisation, with a recording\n\n")
	p.by("level", only(open, ways.Recording), func(r *store.Result) string { return r.Level })
	p.printf("\n")
	if earlier.Held > mostOfWay(hold) {
		p.printf("%s", earlier.HoldOut)
	} else {
		p.printf("%s\nOnly totals are kept of it.\n\n", holdOutHeading)
		p.totals(hold)
		p.printf("\n")
	}
	p.printf("%s\n", mutantsHeading)
	p.rows(open)
	return p.err
}

// Totals writes the table of the ways.
func Totals(w io.Writer, results []store.Result) error {
	p := &printer{w: w}
	p.totals(results)
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func split(results []store.Result) (open, hold []store.Result) {
	for _, r := range results {
		if r.HoldOut() {
			hold = append(hold, r)
		} else {
			open = append(open, r)
		}
	}
	return open, hold
}

func only(results []store.Result, way ways.Way) (list []store.Result) {
	for _, r := range results {
		if r.Way == way {
			list = append(list, r)
		}
	}
	return list
}

func (p *printer) totals(results []store.Result) {
	way := func(r *store.Result) string { return string(r.Way) }
	p.by("way", results, way)
	if proved := Proved(counted(results, way), 1); proved != "" {
		p.printf("\n%s\n", proved)
	}
}

// by writes a table with a row for each key.
func (p *printer) by(title string, results []store.Result, key func(*store.Result) string) {
	t := Table{Title: title, Outcomes: score.Outcomes}
	p.printf("%s", t.Text(counted(results, key)))
}

func counted(results []store.Result, key func(*store.Result) string) []Counted {
	list := make([]Counted, len(results))
	for i := range results {
		r := &results[i]
		list[i] = Counted{Key: key(r), Outcome: r.Outcome, FalseAlarm: r.Twin, Proved: r.Proved, Commit: r.Code.Commit}
	}
	return list
}

// provedMark follows the outcome in the row of a result whose cause is said to be proved.
const provedMark = ", proved"

// rows writes a line for each mutant, with the outcome of each way.
func (p *printer) rows(results []store.Result) {
	results = slices.Clone(results)
	slices.SortFunc(results, func(a, b store.Result) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Way, b.Way))
	})
	p.printf("| package | version | seed | bug | level | way | outcome | commit |\n| --- | --- | ---: | --- | --- | --- | --- | --- |\n")
	for _, r := range results {
		outcome := string(r.Outcome)
		if r.Proved && r.Outcome != score.WrongProved {
			outcome += provedMark
		}
		if r.Twin {
			outcome += ", " + string(score.FalseAlarm)
		}
		p.printf("| %s | %s | %d | %s | %s | %s | %s | %s |\n", r.Package, r.Version, r.Seed, r.Operator, r.Level, r.Way, outcome, r.Code.Commit)
	}
}

// UpperBound is the upper end of the one-sided 95 % interval of a rate of which k of n were
// seen (Clopper and Pearson, Biometrika 26, 1934): the rate at which k or fewer have a
// probability of 5 %.
func UpperBound(k, n int) float64 {
	if k >= n {
		return 1
	}
	low, high := float64(k)/float64(n), 1.0
	for range 60 {
		middle := (low + high) / 2
		if atMost(k, n, middle) > 0.05 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// atMost is the probability of k or fewer of n at a rate.
func atMost(k, n int, rate float64) float64 {
	sum := 0.0
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(rate) + float64(n-i)*math.Log1p(-rate))
	}
	return sum
}
