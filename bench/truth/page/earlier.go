package page

import (
	"fmt"
	"strconv"
	"strings"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// Headings of the page. The part of the hold-out ends where that of the mutants begins.
const (
	holdOutHeading = "## The hold-out\n"
	mutantsHeading = "## Mutants\n"
)

// Earlier is what a page says that Write wrote.
type Earlier struct {
	// Results are those of its rows. They have no headline, and of the code only the commit.
	Results []store.Result
	// HoldOut is the part with the totals of the hold-out, and Held is of how many results of the way with most of them; 0: there is none.
	HoldOut string
	Held    int
}

// ReadEarlier reads a page that Write wrote. An empty text is a page without results.
func ReadEarlier(text string) (*Earlier, error) {
	e := &Earlier{}
	before, rows, _ := strings.Cut(text, mutantsHeading)
	if _, totals, found := strings.Cut(before, holdOutHeading); found {
		e.HoldOut = holdOutHeading + totals
	}
	for line := range strings.Lines(e.HoldOut) {
		e.Held = max(e.Held, heldIn(cells(line)))
	}
	for line := range strings.Lines(rows) {
		c := cells(line)
		if len(c) == 0 || c[0] == "package" || strings.HasPrefix(c[0], "---") {
			continue
		}
		r, err := readRow(c)
		if err != nil {
			return nil, fmt.Errorf("page: the row %q: %w", strings.TrimSpace(line), err)
		}
		e.Results = append(e.Results, *r)
	}
	return e, nil
}

// cells are the cells of a row of a table; nil: a line is no row.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, " |") {
		return nil
	}
	return strings.Split(line[2:len(line)-2], " | ")
}

// heldIn is of how many results a row with the totals of a way is; 0: it is no such row.
func heldIn(c []string) (n int) {
	if len(c) != len(score.Outcomes)+2 {
		return 0
	}
	for i, o := range score.Outcomes {
		count, err := strconv.Atoi(c[i+1])
		if err != nil {
			return 0
		}
		if o != score.FalseAlarm {
			n += count
		}
	}
	return n
}

func readRow(c []string) (*store.Result, error) {
	const columns = 8
	if len(c) != columns {
		return nil, fmt.Errorf("it has %d cells and not %d", len(c), columns)
	}
	seed, err := strconv.ParseUint(c[2], 10, 64)
	if err != nil {
		return nil, err
	}
	r := &store.Result{ID: mutant.ID{Package: c[0], Version: c[1], Seed: seed}, Operator: c[3], Level: c[4], Way: ways.Way(c[5]), Code: store.Code{Commit: c[7]}}
	for i, word := range strings.Split(c[6], ", ") {
		switch {
		case i == 0:
			r.Outcome = score.Outcome(word)
			r.Proved = r.Outcome == score.WrongProved
		case ", "+word == provedMark:
			r.Proved = true
		case word == string(score.FalseAlarm):
			r.Twin = true
		default:
			return nil, fmt.Errorf("the outcome %q is not known", c[6])
		}
	}
	return r, nil
}

// Of returns the result of a mutant in one way; nil: the page has none.
func (e *Earlier) Of(id mutant.ID, way ways.Way) *store.Result {
	for i := range e.Results {
		if r := &e.Results[i]; r.ID == id && r.Way == way {
			return r
		}
	}
	return nil
}
