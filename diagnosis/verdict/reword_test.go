package verdict_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/evidence/signature"
	"diagnose/internal/causetest"
	"diagnose/reports"
)

// mark is what the pseudo-locale of the test has before each letter: no two letters of a
// sentence stay together, so nothing finds a word in it.
const mark = "\u00a4"

func pseudo(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(mark)
		b.WriteRune(r)
	}
	return b.String()
}

// facts are what of a case is no text.
func facts(c *evidence.Case) []string {
	s := signature.Of(c)
	list := append(slices.Clone(s.StackLines), s.CauseLines...)
	list = append(list, "cluster "+s.Cluster(), fmt.Sprint("failure ", c.Failure.Kind, c.Failure.Proof, c.Failure.Accessed, c.Failure.Pointer))
	for _, f := range c.Findings {
		list = append(list, fmt.Sprint("finding ", f.Kind, f.Proof, f.Addr, f.Size, len(f.Facts)))
	}
	for _, l := range c.Limits {
		list = append(list, fmt.Sprint("limit ", l.Code, l.Subject, l.Severe))
	}
	d := c.Diagnosis
	if d == nil {
		return list
	}
	for i := range d.Causes {
		x := &d.Causes[i]
		list = append(list, fmt.Sprint("cause ", x.Kind, x.Proof, x.Variable, len(x.Story)))
		for _, e := range x.Experiments {
			list = append(list, fmt.Sprint("experiment ", e.Failed, e.Runs, e.Expect, e.Agrees(), e.Undecided == "", e.End))
		}
		if n := x.Interleaving; n != nil {
			list = append(list, fmt.Sprint("interleaving ", n.Pattern, n.Variables, n.Missing, len(n.Failing), len(n.Passing)))
		}
	}
	for _, l := range d.Coverage.Limits {
		list = append(list, fmt.Sprint("limit ", l.Code, l.Pass, l.Names))
	}
	list = append(list, fmt.Sprint("excluded ", len(d.Excluded), " passes ", d.Coverage.Passes, " unknown ", d.Unknown != nil))
	if d.Unknown != nil {
		list = append(list, "next "+d.Unknown.Next)
	}
	for _, w := range d.Watched {
		list = append(list, fmt.Sprint("watched ", w.Name, w.Identity.Kind, w.Size))
	}
	return list
}

// Nothing but text differs where every sentence has other words: nothing reads one to
// decide something.
func TestReworded(t *testing.T) {
	programs := []string{"heap_loop.c", "got_null_lookup.c", "bank_transfer.c", "exit_turnstile.c", "deadlock_cycle.cc"}
	tried := 0
	for _, c := range causetest.Cases(t, "../../internal/testdata/cause") {
		if !slices.Contains(programs, filepath.Base(c.Source)) {
			continue
		}
		programs = slices.DeleteFunc(programs, func(p string) bool { return p == filepath.Base(c.Source) })
		tried++
		t.Run(c.String(), func(t *testing.T) {
			rec := c.Failing(t)
			same(t, driver.Request{Recordings: []string{rec.Dir}, Replays: 1})
			if core, err := rec.Core(); err == nil {
				same(t, driver.Request{Core: core})
			}
		})
	}
	if tried != 5 {
		t.Errorf("%d of 5 programs were tried", tried)
	}
}

// same analyses twice, the second time with other words.
func same(t *testing.T, req driver.Request) {
	t.Helper()
	crash := func() *evidence.Case {
		result, err := driver.Crash(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	plain := crash()
	restore := evidence.Reword(pseudo)
	other := crash()
	restore()
	if !strings.HasPrefix(other.Failure.Sentence, mark) || strings.ReplaceAll(other.Failure.Sentence, mark, "") != plain.Failure.Sentence {
		t.Errorf("the sentence is %q, was %q", other.Failure.Sentence, plain.Failure.Sentence)
	}
	want, got := facts(plain), facts(other)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Errorf("with other words:\n%s\nwithout:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			break
		}
	}
	for _, line := range got {
		if strings.Contains(line, mark) {
			t.Errorf("a sentence is in what is no text: %q", line)
		}
	}
	var report strings.Builder
	if err := reports.Write(&report, other, reports.Options{Format: reports.Text}); err != nil || !strings.Contains(report.String(), mark) {
		t.Errorf("the report does not have the other words: %v", err)
	}
}
