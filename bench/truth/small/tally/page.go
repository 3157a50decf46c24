package tally

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/bench/truth/page"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/small/trial"
)

const introduction = `# Causes of bugs in small programs

Made by ` + "`make truth-small`" + `; see bench/truth/small. Each seed makes a small program with one bug, of
parts that are chosen at random: the bug, carriers that take the bad value through other objects, an end by which the program
fails, and innocent work around them. The right answers are data that comes with the program: the lines of the bug. Where a sanitizer
sees the bug, its first violation is right as well, and has to be at the intended lines: a program for which it is not is
*unconfirmed* and not counted. Of a bug of threads two accesses of the bug are wanted. The twin is the same
program without the bug; a recording of it must not be one of a failure. A program of one thread that does not fail while it is
recorded is recorded once more with fresh memory filled ([recording.md](recording.md)). What the outcomes mean is in [truth.md](truth.md).

`

// outcomes are the columns.
var outcomes = append(slices.Clone(score.Outcomes[:8]), score.FalseAlarm, trial.Unconfirmed)

// Page is the text of the page.
func Page(results []Result) string {
	var open, hold []Result
	for _, r := range results {
		if r.HoldOut {
			hold = append(hold, r)
		} else {
			open = append(open, r)
		}
	}
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "%d programs were tried, %d of them of the hold-out: a third, by a hash of the seed.\n\n", len(results), len(hold))
	fmt.Fprintf(&b, "Of all: %s\n\n## All but the hold-out\n\n", proved(results))
	table(&b, "bugs of", open, group)
	fmt.Fprintf(&b, "\n%s\n\n### By kind of bug\n\n", proved(open))
	table(&b, "bug", open, func(r *Result) string { return r.Kind })
	b.WriteString("\n### By the level of the first cause\n\n")
	table(&b, "level", open, level)
	b.WriteString("\n### By the way of failing\n\n")
	table(&b, "end", open, func(r *Result) string { return r.Ending })
	b.WriteString("\n### By compiler and optimisation\n\n")
	table(&b, "build", open, func(r *Result) string { return fmt.Sprintf("%s, %s -%s", r.Language, r.Compiler, r.Level) })
	b.WriteString("\n## The hold-out\n\nOnly totals are kept of it.\n\n")
	table(&b, "bugs of", hold, group)
	fmt.Fprintf(&b, "\n%s\n\n## Causes that are not the bug\n\n", proved(hold))
	wrong(&b, open)
	return b.String()
}

func group(r *Result) string {
	if r.Concurrent {
		return "threads and signals"
	}
	return "memory and values"
}

// level is the level of proof of the first cause.
func level(r *Result) string {
	if r.Headline == nil || r.Headline.Kind == "" {
		return "no cause"
	}
	return string(r.Headline.Proof)
}

// proved says how many causes are said to be proved, and with how many errors.
func proved(results []Result) string {
	return cmp.Or(page.Proved(counted(results, group), 2), "no cause is said to be proved.")
}

// table writes a row for each key and a column for each outcome, and one for the proved causes.
func table(b *strings.Builder, title string, results []Result, key func(*Result) string) {
	t := page.Table{Title: title, Outcomes: outcomes, Proved: true}
	b.WriteString(t.Text(counted(results, key)))
}

func counted(results []Result, key func(*Result) string) []page.Counted {
	list := make([]page.Counted, len(results))
	for i := range results {
		r := &results[i]
		list[i] = page.Counted{Key: key(r), Outcome: r.Outcome, FalseAlarm: r.FalseAlarm, Proved: r.Proved, Commit: r.Code.Commit}
	}
	return list
}

// wrong lists the programs whose first cause is not the bug.
func wrong(b *strings.Builder, results []Result) {
	b.WriteString("| seed | bug | end | build | outcome | kind of cause | level | commit |\n| ---: | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range results {
		r := &results[i]
		if r.Headline == nil || r.Outcome != score.Wrong && r.Outcome != score.WrongProved && r.Outcome != score.Reported {
			continue
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s, %s -%s | %s | %s | %s | %s |\n", r.Seed, r.Kind, r.Ending, r.Language, r.Compiler, r.Level,
			r.Outcome, r.Headline.Kind, level(r), r.Code.Commit)
	}
}
