package causetest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// marked is an access as the marks have it.
type marked struct {
	context string // thread and handler
	line    int
	kind    evidence.AccessKind
	by      evidence.By
}

// some is every third case, or all of them for the whole matrix: the programs and their marks
// seldom change.
func some(t *testing.T) []*Case {
	list := Cases(t, "../testdata/cause")
	if FullMatrix() {
		return list
	}
	var third []*Case
	for i := 0; i < len(list); i += 3 {
		third = append(third, list[i])
	}
	return third
}

// TestMarks traces the variables of races and looks for the accesses that are
// marked: in the failing run they come in the order of the pattern, in the passing
// run they do not.
func TestMarks(t *testing.T) {
	// Their marks are the steps that a value came by.
	values := []evidence.CauseKind{evidence.CauseBadValue, evidence.CauseBadInput, evidence.CauseUninitialised}
	for _, c := range some(t) {
		if slices.Contains(values, c.Kind) || c.Search != "" || len(c.Accesses) == 0 || c.Variable == "" || strings.Contains(c.Variable, "*") || c.Pattern == evidence.PatternLockOrder {
			continue
		}
		if strings.Contains(c.Variable, "'s ") || c.Variable == "errno" {
			continue // on a stack or a thread's own, which no watch expression leads to
		}
		t.Run(c.String(), func(t *testing.T) {
			var log []marked
			for _, rec := range c.AllFailing(t, len(c.runs[failing])) {
				if log = c.trace(t, rec); !c.happens(log, true) {
					t.Errorf("no %s of lines %d in a failing run: %v", c.Pattern, c.Accesses, log)
				}
			}
			for _, rec := range c.Passing(t, len(c.runs[passing])) {
				if log = c.trace(t, rec); len(log) == 0 || c.happens(log, false) {
					t.Errorf("%s of lines %d in a passing run, or no access: %v", c.Pattern, c.Accesses, log)
				}
			}
		})
	}
}

// damagePattern is in the line that the agent writes about a damaged object.
var damagePattern = regexp.MustCompile(`error=(overflow|underflow|use-after-free) .* damage=0x([0-9a-f]+)`)

// TestStores traces the damaged memory: the last store to it before the failure must be on the
// expected line. The heap names the damaged memory itself; an overwritten variable is that of the
// case.
func TestStores(t *testing.T) {
	for _, c := range some(t) {
		heap := slices.Contains([]evidence.CauseKind{evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow, evidence.CauseUseAfterFree}, c.Kind)
		if len(c.Accesses) > 0 || !heap && c.Kind != evidence.CauseOverwritten {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			rec := c.Failing(t)
			var log []marked
			if heap {
				m := damagePattern.FindStringSubmatch(c.build(t, false).said[rec.Dir])
				if m == nil {
					t.Fatalf("the heap does not name the damaged object: %s", c.build(t, false).said[rec.Dir])
				}
				addr, err := strconv.ParseUint(m[2], 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				log = trace(t, rec, []watchtrace.Target{{Name: m[0], Addr: evidence.Addr(addr &^ 7), Size: 8, Writes: true}})
			} else {
				log = c.trace(t, rec)
			}
			if i := slices.IndexFunc(log, func(a marked) bool { return a.line == c.Line && a.by != evidence.ByHeap }); i < 0 {
				t.Errorf("line %d does not write there: %v", c.Line, log)
			} else if j := slices.IndexFunc(log[i:], func(a marked) bool { return a.line != c.Line && a.by != evidence.ByHeap && a.kind != evidence.Read }); j >= 0 {
				t.Errorf("line %d is not the last one that writes there: %v", c.Line, log)
			}
		})
	}
}

// trace traces the case's variables.
func (c *Case) trace(t *testing.T, rec *record.Recording) []marked {
	t.Helper()
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
	return trace(t, rec, targets)
}

func trace(t *testing.T, rec *record.Recording, targets []watchtrace.Target) []marked {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	log, err := watchtrace.Trace(ctx, rec, targets, watchtrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []marked
	for _, a := range log.Accesses {
		list = append(list, marked{fmt.Sprint(a.Thread, " ", a.Handler), log.Contexts[a.Context].Site.Line, a.Kind.Kind(), a.By})
	}
	return list
}

// happens tells whether the accesses of the pattern come one after the other.
// Of a pattern of two, the second one may not come if the run failed.
func (c *Case) happens(log []marked, failed bool) bool {
	if len(c.Accesses) == 2 {
		for i := range log {
			// Others may read in between, but not write.
			k := slices.IndexFunc(log[i+1:], func(a marked) bool { return a.context == log[i].context || a.kind != evidence.Read || c.is(a, 1) })
			if k >= 0 && log[i].context != log[i+1+k].context && c.is(log[i], 0) && c.is(log[i+1+k], 1) {
				return true
			}
		}
		return failed && c.indexOfAccess(log, 0, 0) >= 0 && c.indexOfAccess(log, 1, 0) < 0
	}
	for i := range log {
		if !c.is(log[i], 0) {
			continue
		}
		last := len(c.Accesses) - 1 // of two variables, it is not always the third
		k := i + 1 + slices.IndexFunc(log[i+1:], func(a marked) bool {
			return a.context == log[i].context && (c.Pattern != evidence.PatternPair || c.is(a, last))
		})
		if k <= i || !c.is(log[k], last) {
			continue
		}
		if slices.ContainsFunc(log[i+1:k], func(a marked) bool { return a.context != log[i].context && c.is(a, 1) }) {
			return true
		}
	}
	return false
}

// indexOfAccess is the index of the pattern's access of that number, from an index on; -1:
// there is none.
func (c *Case) indexOfAccess(log []marked, number, from int) int {
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
