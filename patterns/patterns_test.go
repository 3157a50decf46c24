package patterns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// find runs all steps on texts; the first line of a text says whether the run
// failed.
func find(t testing.TB, threads []uint32, texts ...string) *Result {
	t.Helper()
	var failing, passing []*evidence.AccessLog
	for _, text := range texts {
		log := accesslog.Log(text)
		if log.Failed {
			failing = append(failing, log)
		} else {
			passing = append(passing, log)
		}
	}
	runs, err := delta.Align(failing, passing)
	if err != nil {
		t.Fatal(err)
	}
	return Find(delta.Compare(runs), Options{Threads: threads})
}

// lines are where a candidate's accesses are: "t1!14:R12".
func (r *Result) lines(c *Candidate) string {
	var parts []string
	log := r.Delta.Runs.Failing[c.Run].Log
	for _, i := range c.Accesses {
		a := &log.Accesses[i]
		parts = append(parts, fmt.Sprintf("%d", log.Contexts[a.Context].Site.Line))
	}
	return strings.Join(parts, " ")
}

func (r *Result) suspicious() []Candidate {
	return slices.DeleteFunc(slices.Clone(r.Candidates), func(c Candidate) bool { return !c.Suspicious() })
}

// testCase has a failing and a passing run, the expected first candidate, and
// the failing run of the fixed program, where nothing is suspicious.
type testCase struct {
	name             string
	fails, passes    string
	pattern          evidence.PatternKind
	variables, lines string
	missing, instead string
	twin, twinPasses string
	failed           uint32
}

var cases = slices.Concat(interleavings, orders, pairs, lockOrders)

func TestPatterns(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := find(t, []uint32{c.failed}, c.fails, c.passes)
			if len(r.Candidates) == 0 {
				t.Fatal("no candidate")
			}
			first := &r.Candidates[0]
			if first.Pattern != c.pattern || strings.Join(first.Variables, " ") != c.variables || r.lines(first) != c.lines {
				t.Errorf("first: %s of %v at %s", first.Pattern, first.Variables, r.lines(first))
				for i := range r.Candidates {
					t.Logf("%s at %s, score %.2f, class %d", r.Candidates[i].Key, r.lines(&r.Candidates[i]), r.Candidates[i].Score, r.Candidates[i].class)
				}
			}
			if first.Missing != c.missing {
				t.Errorf("missing lock %q, want %q", first.Missing, c.missing)
			}
			if !strings.Contains(first.Instead.Of(0, 0), c.instead) || first.Instead.Text == "" {
				t.Errorf("instead: %q, want %q", first.Instead.Of(0, 0), c.instead)
			}
			if first.Score != 1 || first.FailingRuns != 1 || first.PassingRuns != 0 || !first.Suspicious() {
				t.Errorf("score %v, %d failing, %d passing runs", first.Score, first.FailingRuns, first.PassingRuns)
			}
		})
	}
}

// TestTwins: the fixed programs' runs have nothing suspicious, with or without
// a passing run to compare with.
func TestTwins(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			texts := []string{c.twin, strings.Replace(c.twin, "run failed", "", 1)}
			if c.twinPasses != "" {
				texts = append(texts, c.twinPasses)
			}
			for _, part := range [][]string{texts[:1], texts} {
				for _, s := range find(t, []uint32{c.failed}, part...).suspicious() {
					t.Errorf("%d logs: %s", len(part), s.Key)
				}
			}
		})
	}
}

// TestWithoutPassing: patterns that no serial order has are still found.
func TestWithoutPassing(t *testing.T) {
	for _, c := range cases {
		if n := len(strings.Fields(c.lines)); n < 3 {
			continue
		}
		r := find(t, []uint32{c.failed}, c.fails)
		list := r.suspicious()
		if len(list) == 0 || strings.Join(list[0].Variables, " ") != c.variables {
			t.Errorf("%s: %d candidates", c.name, len(list))
			continue
		}
		if !strings.Contains(r.Measure, "no passing run") || list[0].PassingOf != 0 {
			t.Errorf("%s: measure %q", c.name, r.Measure)
		}
	}
}

// TestHeapBelongsToNothing: the heap's clearing of memory does not belong together with
// what its owner does to it later. A free between two accesses is a pattern.
func TestHeapBelongsToNothing(t *testing.T) {
	const head = "run failed\nmain t1\nt1 create t2 worker\n"
	threes := func(text string) (n int) {
		for _, c := range find(t, nil, head+text).Candidates {
			if len(c.Accesses) == 3 {
				n++
			}
		}
		return n
	}
	if n := threes("t1 W o 7->0 @3 by heap\nt2 RW o 0->1 @20\nt1 RW o 1->2 @5\n"); n != 0 {
		t.Errorf("%d patterns begin with the heap's access", n)
	}
	if n := threes("t1 R o 1 @3\nt2 RW o 1->2 @20\nt1 W o 2->9 @5 by heap\n"); n != 0 {
		t.Errorf("%d patterns end with it", n)
	}
	if n := threes("t2 R o 1 @20\nt1 W o 1->9 @5 by heap\nt2 R o 9 @21\n"); n != 1 {
		t.Errorf("%d patterns have it in the middle, want 1", n)
	}
}

// TestAbsence: if no access is seen in passing runs the reason is given, and a run that
// was not traced is not counted among those that lack a pattern.
func TestAbsence(t *testing.T) {
	const (
		head  = "main t1\nt1 create t2 worker\n"
		fails = "run failed\n" + head + "t1 W x 0->1 @5\nt2 R x 1 @20\n"
	)
	for _, c := range []struct {
		name, passes, instead string
		of                    int
	}{
		{"it is not there", head + "untraced x it has no such object\n", "passing runs do not tell: it has no such object", 0},
		{"another is accessed", head + "t1 W x 0->1 @5\nt2 R y 1 @20\n", "worker at a.c:20 accesses y, and never it", 1},
		{"none is", head + "t1 W x 0->1 @5\n", "worker at a.c:20 never accesses it", 1},
		{"nothing at all", head + "t1 W y 0->1 @5\nt2 R y 1 @21\n", "accesses y, and never it", 1},
	} {
		r := find(t, nil, fails, c.passes)
		if len(r.Candidates) == 0 {
			t.Errorf("%s: no candidate", c.name)
			continue
		}
		got := &r.Candidates[0]
		if !strings.Contains(got.Instead.Of(0, 0), c.instead) || got.PassingOf != c.of {
			t.Errorf("%s: %q, of %d passing runs; want %q of %d", c.name, got.Instead.Of(0, 0), got.PassingOf, c.instead, c.of)
		}
	}
}

// TestReadingOnly: a lock that all hold for reading does not exclude anyone; one
// that the other holds for writing does.
func TestReadingOnly(t *testing.T) {
	const head = "run failed\nmain t1\nt1 create t2 a\nt1 create t3 b\n"
	for _, x := range []struct {
		first, other string
		missing      string
		reading      bool
	}{
		{"rdlock", "rdlock", "L", true},
		{"lock", "rdlock", "", false},
	} {
		text := head + "t2 " + x.first + " L\nt2 R x 1 @20\nt2 event\n"
		if x.first == "lock" {
			text += "t2 unlock L\n"
		}
		text += "t3 " + x.other + " L\nt3 W x 1->2 @30\nt3 unlock L\n"
		if x.first == "lock" {
			text += "t2 lock L\n"
		}
		text += "t2 W x 2->2 @21\n"
		found := false
		for _, c := range find(t, nil, text).Candidates {
			if len(c.Accesses) != 3 {
				continue
			}
			found = true
			if c.Reading != x.reading || x.reading && c.Missing != x.missing {
				t.Errorf("%s and %s: missing %q, for reading only: %v", x.first, x.other, c.Missing, c.Reading)
			}
		}
		if !found {
			t.Errorf("%s and %s: no pattern of three", x.first, x.other)
		}
	}
}
