package tally

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"diagnose/bench/truth/page"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/threads/raced"
)

const introduction = `# Causes of bugs of threads, in many schedules

Made by ` + "`make truth-threads`" + `; see bench/truth/threads. Each program has a bug of its threads. It is recorded many times, and its
threads are scheduled differently each time. The same bug in another schedule has led to proofs of a wrong cause before: other threads
reach the failing place, and other accesses are between. One recording of a program does not show that. Each failing
recording that is chosen is diagnosed twice: alone, and together with a random passing one.

The programs are in internal/testdata/raced, where the lines that are right answers are marked. A cause is right if its place, or an access
of its order in the failing or the passing run, is at such a line. A cause that is about a variable which has no part in the bug is wrong,
wherever it is. A report is judged by its typed fields. The columns
after *diagnosed* count diagnoses, so they add up to twice its number where some run passed.

- *right and proved*, *right*: the first cause is the bug, and is said to be proved or not
- *unknown with a right lead*, *unknown*: no cause is named
- *wrong*: the first cause is not the bug; *wrong and proved*: it is even said to be proved, which is the worst
- *no report*: diagnose ended without a report, or not within its time
- *events*, *turns*: the argument of ` + "`diagnose record --races`" + `

`

// column is a judgement and its title.
type column struct {
	title string
	score.Score
}

var columns = []column{
	{"right and proved", score.Score{Outcome: score.Right, Proved: true}},
	{"right", score.Score{Outcome: score.Right}},
	{string(raced.Lead), score.Score{Outcome: raced.Lead}},
	{string(score.Unknown), score.Score{Outcome: score.Unknown}},
	{string(score.Wrong), score.Score{Outcome: score.Wrong}},
	{string(score.WrongProved), score.Score{Outcome: score.WrongProved, Proved: true}},
	{string(score.ToolFailed), score.Score{Outcome: score.ToolFailed}},
}

// Header is what the page says of the measurement.
type Header struct {
	Commit    string // of the diagnose that was measured
	Runs, Per int    // recordings of each row, and those that were diagnosed at most
	Planned   int    // rows; the time may have been up before all of them were done
}

// Page is the text of the page.
func Page(h Header, rows []Row) string {
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "By commit %s. Runs of each build in each way: %d; failing ones that were diagnosed: at most %d.\n", h.Commit, h.Runs, h.Per)
	if len(rows) < h.Planned {
		fmt.Fprintf(&b, "The time was up when %d of %d builds and ways were done.\n", len(rows), h.Planned)
	}
	fmt.Fprintf(&b, "\nOf all: %s\n\n## By way\n\n", proved(rows))
	totals(&b, rows)
	b.WriteString("\n## By program\n\n")
	programs(&b, rows)
	b.WriteString("\n## Causes that are not the bug\n\n")
	wrong(&b, rows)
	return b.String()
}

// proved says how many causes are said to be proved, and with how many errors.
func proved(rows []Row) string {
	right, wrong := 0, 0
	for i := range rows {
		for _, counts := range []Counts{rows[i].Alone, rows[i].Together} {
			for s, n := range counts {
				switch {
				case s.Outcome == score.WrongProved:
					wrong += n
				case s.Proved:
					right += n
				}
			}
		}
	}
	return cmp.Or(page.Wrongly(right+wrong, wrong, 2), "no cause is said to be proved.")
}

// head writes the first two lines of a table: titles of texts and of numbers, and the columns.
func head(b *strings.Builder, texts, numbers []string) {
	for _, c := range columns {
		numbers = append(numbers, c.title)
	}
	fmt.Fprintf(b, "| %s | %s |\n|%s%s\n", strings.Join(texts, " | "), strings.Join(numbers, " | "),
		strings.Repeat(" --- |", len(texts)), strings.Repeat(" ---: |", len(numbers)))
}

// cells writes the numbers of the columns, which end a row.
func cells(b *strings.Builder, parts ...Counts) {
	for _, c := range columns {
		n := 0
		for _, p := range parts {
			n += p[c.Score]
		}
		fmt.Fprintf(b, " %d |", n)
	}
	b.WriteString("\n")
}

// totals has two rows for each way, in the order in which the rows have the ways.
func totals(b *strings.Builder, rows []Row) {
	var ways []string
	of := map[string][2][]Counts{}
	for i := range rows {
		r := &rows[i]
		parts, known := of[r.Way]
		if !known {
			ways = append(ways, r.Way)
		}
		of[r.Way] = [2][]Counts{append(parts[0], r.Alone), append(parts[1], r.Together)}
	}
	head(b, []string{"way", "diagnosed"}, nil)
	for _, way := range ways {
		for i, parts := range of[way] {
			fmt.Fprintf(b, "| %s | %s |", way, diagnosed(i == 1))
			cells(b, parts...)
		}
	}
}

func diagnosed(together bool) string {
	if together {
		return "with a passing run"
	}
	return "alone"
}

func programs(b *strings.Builder, rows []Row) {
	head(b, []string{"program", "build", "way"}, []string{"runs", "failing", "diagnosed"})
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(b, "| %s | %s | %s | %d | %d | %d |", r.Program, r.Build, r.Way, r.Runs, r.Failing, r.Diagnosed)
		cells(b, r.Alone, r.Together)
	}
}

// wrong lists the causes that are not the bug.
func wrong(b *strings.Builder, rows []Row) {
	b.WriteString("| program | build | way | diagnosed | outcome | kind of cause | variable | place |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range rows {
		r := &rows[i]
		for _, w := range r.Wrong {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Program, r.Build, r.Way, diagnosed(w.Together), w.Outcome, w.Kind, w.Variable, w.place())
		}
	}
}

func (w *Wrong) place() string {
	if w.Site == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Base(w.Site.File), w.Site.Line)
}
