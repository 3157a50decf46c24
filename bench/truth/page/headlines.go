package page

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
)

const headlinesIntroduction = `# Headlines, and how often they are right

Made by ` + "`make truth-headlines`" + `, which diagnoses the kept recordings of the mutants outside of the hold-out again; see
[truth.md](truth.md) for what the mutants are and when a report is right. A headline is the first cause of a report. Its basis is the
rule that was seen to be broken, or, of a value by which no rule was, where it began (` + "`evidence.Basis`" + `). A kind of headline that is
wrong more often than right is no headline: it belongs among the leads.

`

// Headlines writes how often each kind of headline is right. The results are of one commit.
func Headlines(w io.Writer, results []store.Result, commit string) error {
	p := &printer{w: w}
	p.printf("%s", headlinesIntroduction)
	named, silent := splitNamed(results)
	p.printf("%d recordings by commit %s: of %d the report names a cause, of %d none.\n\n## Reports that name a cause\n\n", len(results), commit, len(named), len(silent))
	p.headlines([]string{"basis", "kind", "proof", "an experiment supports it"}, named, func(h *score.Headline) []string {
		return []string{string(h.Basis), string(h.Kind), string(h.Proof), yes(h.Experiment)}
	})
	p.printf("\n## By basis alone\n\n")
	p.headlines([]string{"basis", "a broken rule"}, named, func(h *score.Headline) []string {
		return []string{string(h.Basis), yes(h.Basis.Broken())}
	})
	p.printf("\n## Reports that name no cause, by the kind of failure\n\n")
	p.headlines([]string{"failure"}, silent, func(h *score.Headline) []string { return []string{string(h.Failure)} })
	p.printf("\n## Wrong\n\n| package | seed | bug | level | basis | kind | proof |\n| --- | ---: | --- | --- | --- | --- | --- |\n")
	for _, r := range wrong(results) {
		h := r.Headline
		p.printf("| %s | %d | %s | %s | %s | %s | %s |\n", r.Package, r.Seed, r.Operator, r.Level, h.Basis, h.Kind, h.Proof)
	}
	return p.err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// splitNamed parts the results by whether the report names a cause. Results without a report are in neither part.
func splitNamed(results []store.Result) (named, silent []store.Result) {
	for _, r := range results {
		switch {
		case r.Headline == nil:
		case r.Headline.Kind != "":
			named = append(named, r)
		default:
			silent = append(silent, r)
		}
	}
	return named, silent
}

func wrong(results []store.Result) (list []store.Result) {
	for _, r := range results {
		if r.Headline != nil && (r.Outcome == score.Wrong || r.Outcome == score.WrongProved) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b store.Result) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Seed, b.Seed))
	})
	return list
}

// headlineOutcomes are the columns.
var headlineOutcomes = []score.Outcome{score.Right, score.Root, score.Reported, score.Unknown, score.Wrong, score.WrongProved}

// headlines writes a table with a row for each key, whose cells have the titles.
func (p *printer) headlines(titles []string, results []store.Result, key func(*score.Headline) []string) {
	counts := map[string]map[score.Outcome]int{}
	for i := range results {
		k := strings.Join(key(results[i].Headline), " | ")
		if counts[k] == nil {
			counts[k] = map[score.Outcome]int{}
		}
		counts[k][results[i].Outcome]++
	}
	p.printf("| %s |", strings.Join(titles, " | "))
	for _, o := range headlineOutcomes {
		p.printf(" %s |", o)
	}
	p.printf("\n|%s%s\n", strings.Repeat(" --- |", len(titles)), strings.Repeat(" ---: |", len(headlineOutcomes)))
	for _, k := range sortedKeys(counts) {
		p.printf("| %s |", k)
		for _, o := range headlineOutcomes {
			p.printf(" %d |", counts[k][o])
		}
		p.printf("\n")
	}
}

func sortedKeys(counts map[string]map[score.Outcome]int) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
