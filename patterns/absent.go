package patterns

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
)

// notTraced says why a run was not traced for a variable; empty: it was traced, or the
// run has no variable of this name.
func notTraced(run *delta.Run, variable int32) string {
	why := ""
	for i, n := range run.Variable {
		if n != variable {
			continue
		}
		if run.Log.Variables[i].Untraced == "" {
			return ""
		}
		why = run.Log.Variables[i].Untraced
	}
	return why
}

// partly reports whether some accesses of a run to a variable may not have been seen.
func partly(run *delta.Run, variable int32) bool {
	for i, n := range run.Variable {
		if n == variable && run.Log.Variables[i].Partial() {
			return true
		}
	}
	return false
}

// tracedIn counts the passing runs in which a pattern's variables were traced.
func (f *finder) tracedIn(k key) (n int32) {
	for i := range f.passing {
		n += int32(bit(f.tells(i, k.variable) && f.tells(i, k.other())))
	}
	return n
}

// tells reports whether a variable was traced in a passing run.
func (f *finder) tells(run int, variable int32) bool {
	_, not := f.untold[run][variable]
	return !not
}

// tellUntold records the variables that were not traced in passing runs.
func (f *finder) tellUntold() {
	for _, run := range f.runs.Passing {
		untold := map[int32]string{}
		for _, n := range run.Variable {
			if why := notTraced(run, n); why != "" {
				untold[n] = why
			}
		}
		f.untold = append(f.untold, untold)
	}
}

// absence says why no access to a candidate's variable is seen at a place, in the
// passing run with this number or in all of them (-1).
func (f *finder) absence(c *Candidate, place delta.Place, number int) Instead {
	what := "it"
	if c.key.variable != c.key.other() {
		what = "them"
	}
	who := f.runs.PlaceText(place)
	why, part := "", false
	var elsewhere []string
	told := 0
	for i, run := range f.runs.Passing {
		if number >= 0 && number != i {
			continue
		}
		for _, v := range []int32{c.key.variable, c.key.other()} {
			if !f.tells(i, v) {
				why = f.untold[i][v]
			} else {
				told++
			}
			part = part || partly(run, v)
		}
		for _, v := range f.d.Passing[i].Variables(place) {
			if name := f.runs.Variables[v]; v != c.key.variable && v != c.key.other() && !slices.Contains(elsewhere, name) {
				elsewhere = append(elsewhere, name)
			}
		}
	}
	switch {
	case told == 0 && why != "":
		return Instead{Text: fmt.Sprintf("passing runs do not tell: %s", why)}
	case part:
		return InPassing("no access to %s is seen of %s, but not all accesses are seen", what, who)
	case len(elsewhere) > 0:
		const most = 2
		return InPassing("%s accesses %s, and never %s", who, strings.Join(elsewhere[:min(len(elsewhere), most)], " and "), what)
	}
	return InPassing("%s never accesses %s", who, what)
}
