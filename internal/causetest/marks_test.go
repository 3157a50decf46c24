package causetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/record"
	"diagnose/watchtrace"
)

// marked is an access as the marks have it.
type marked struct {
	context string // thread and handler
	line    int
	kind    evidence.AccessKind
}

// TestMarks traces the variables of races and looks for the accesses that are
// marked: in the failing run they come in the order of the pattern, in the passing
// run they do not.
func TestMarks(t *testing.T) {
	for _, c := range Some(Cases(t, "../../testdata/cause")) {
		if c.Search != "" || len(c.Accesses) == 0 || c.Variable == "" || strings.Contains(c.Variable, "*") || c.Pattern == evidence.PatternLockOrder {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			log := c.trace(t, c.Failing(t))
			if !c.happens(log, true) {
				t.Errorf("no %s of lines %d in the failing run: %v", c.Pattern, c.Accesses, log)
			}
			log = c.trace(t, c.Passing(t, 1)[0])
			if len(log) == 0 || c.happens(log, false) {
				t.Errorf("%s of lines %d in the passing run, or no access: %v", c.Pattern, c.Accesses, log)
			}
		})
	}
}

func (c *Case) trace(t *testing.T, rec *record.Recording) []marked {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	path, err := rec.Core()
	if err != nil {
		t.Fatal(err)
	}
	p, err := image.OpenCore(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var targets []watchtrace.Target
	for _, name := range strings.Split(c.Variable, ",") {
		list, err := watchtrace.Resolve(p, name)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, list...)
	}
	log, err := watchtrace.Trace(ctx, rec, targets, watchtrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []marked
	for _, a := range log.Accesses {
		list = append(list, marked{fmt.Sprint(a.Thread, " ", a.Handler), log.Contexts[a.Context].Site.Line, a.Kind.Kind()})
	}
	return list
}

// happens tells whether the accesses of the pattern come one after the other.
// Of a pattern of two, the second one may not come if the run failed.
func (c *Case) happens(log []marked, failed bool) bool {
	if len(c.Accesses) == 2 {
		for i := range log[1:] {
			if c.is(log[i], 0) && c.is(log[i+1], 1) && log[i].context != log[i+1].context {
				return true
			}
		}
		return failed && c.find(log, 0, 0) >= 0 && c.find(log, 1, 0) < 0
	}
	for i := range log {
		if !c.is(log[i], 0) {
			continue
		}
		k := i + 1 + slices.IndexFunc(log[i+1:], func(a marked) bool { return a.context == log[i].context })
		if c.Pattern == evidence.PatternPair {
			k = c.find(log, 2, i+1)
		}
		if k <= i || log[k].context != log[i].context || !c.is(log[k], 2) {
			continue
		}
		if slices.ContainsFunc(log[i+1:k], func(a marked) bool { return a.context != log[i].context && c.is(a, 1) }) {
			return true
		}
	}
	return false
}

// find is the index of the pattern's access of that number, from an index on; -1:
// there is none.
func (c *Case) find(log []marked, number, from int) int {
	i := slices.IndexFunc(log[from:], func(a marked) bool { return c.is(a, number) })
	if i < 0 {
		return i
	}
	return from + i
}

func (c *Case) is(a marked, number int) bool {
	letter := evidence.ReadWrite
	if c.Pattern != evidence.PatternPair {
		letter = map[byte]evidence.AccessKind{'R': evidence.Read, 'W': evidence.Write}[c.Pattern[number]]
	}
	return a.line == c.Accesses[number] && (letter == evidence.ReadWrite || a.kind == letter || a.kind == evidence.ReadWrite)
}
