package page

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/bench/truth/score"
)

// Counted is what a result counts as.
type Counted struct {
	Key        string // of its row
	Outcome    score.Outcome
	FalseAlarm bool // it counts as one in addition to its outcome
	Proved     bool // its first cause is said to be proved
	Commit     string
}

// Table has a row for each key and a column for each outcome.
type Table struct {
	Title    string // of the keys
	Outcomes []score.Outcome
	Proved   bool // there is a column for the proved causes
}

type row struct {
	outcomes map[score.Outcome]int
	proved   int
	commits  []string
}

// Text is the table of results in Markdown.
func (t *Table) Text(results []Counted) string {
	rows := map[string]*row{}
	var keys []string
	for i := range results {
		k := results[i].Key
		if rows[k] == nil {
			rows[k] = &row{outcomes: map[score.Outcome]int{}}
			keys = append(keys, k)
		}
		rows[k].add(&results[i])
	}
	slices.Sort(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", t.Title)
	for _, o := range t.Outcomes {
		fmt.Fprintf(&b, " %s |", o)
	}
	numbers := len(t.Outcomes)
	if t.Proved {
		b.WriteString(" proved |")
		numbers++
	}
	fmt.Fprintf(&b, " commit |\n| --- |%s --- |\n", strings.Repeat(" ---: |", numbers))
	for _, k := range keys {
		fmt.Fprintf(&b, "| %s |", k)
		for _, o := range t.Outcomes {
			fmt.Fprintf(&b, " %d |", rows[k].outcomes[o])
		}
		if t.Proved {
			fmt.Fprintf(&b, " %d |", rows[k].proved)
		}
		slices.Sort(rows[k].commits)
		fmt.Fprintf(&b, " %s |\n", strings.Join(rows[k].commits, ", "))
	}
	return b.String()
}

func (r *row) add(c *Counted) {
	r.outcomes[c.Outcome]++
	if c.FalseAlarm {
		r.outcomes[score.FalseAlarm]++
	}
	if c.Proved {
		r.proved++
	}
	if !slices.Contains(r.commits, c.Commit) {
		r.commits = append(r.commits, c.Commit)
	}
}

// Proved says how many causes are said to be proved, and with how many errors. The bound of their rate, in per cent, has so
// many digits after the point. It is empty if there are none.
func Proved(results []Counted, digits int) string {
	proved, wrong := 0, 0
	for i := range results {
		if results[i].Proved {
			proved++
		}
		if results[i].Outcome == score.WrongProved {
			wrong++
		}
	}
	return Wrongly(proved, wrong, digits)
}

// Wrongly says of so many causes that are said to be proved how many are wrong, as Proved does.
func Wrongly(proved, wrong, digits int) string {
	if proved == 0 {
		return ""
	}
	return fmt.Sprintf("%d causes are said to be proved, %d of them wrongly; with 95 %% confidence at most %.*f %%.", proved, wrong, digits, 100*UpperBound(wrong, proved))
}
