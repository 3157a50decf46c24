package nightly

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/evidence/suppress"
)

// A failure that a rule suppresses is in no list, and counted with its rule. One of which the rule has
// expired is told as before, and so is an entry of the file that fits none.
func TestSuppressed(t *testing.T) {
	c, _ := filled(t, failure{what: "good", cause: "one", ago: time.Hour}, failure{what: "good", cause: "one", ago: 2 * time.Hour}, failure{what: "good", cause: "two", ago: time.Hour})
	run := night1(t, options(c))
	open := summary(t, c, run)
	if len(open.New) != 2 || open.Suppressed != nil {
		t.Fatalf("without a list: %d new, %+v", len(open.New), open.Suppressed)
	}
	one := open.New[0]
	if one.Count != 2 {
		one = open.New[1]
	}
	rules := func(until, pattern string) *suppress.List {
		l, err := suppress.Parse([]byte("[[suppress]]\nreason = \"known\"\nuntil = " + until + "\n" + pattern + "\n[[suppress]]\nreason = \"gone\"\nuntil = 2999-01-01\nfunction = \"no_such\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, x := range map[string]struct {
		list                 *suppress.List
		fresh, used, expired int
	}{
		"signature": {rules("2999-01-01", "signature = \""+one.Digest[:12]+"\""), 1, 2, 0},
		"kind":      {rules("2999-01-01", "kind = \"heap-overflow\""), 0, 3, 0},
		"expired":   {rules("2020-01-01", "kind = \"heap-overflow\""), 2, 0, 3},
	} {
		s, err := Summarize(t.Context(), c, run, 24*time.Hour, x.list)
		if err != nil {
			t.Fatal(err)
		}
		count := func(list []Suppressed) int {
			if len(list) == 0 {
				return 0
			}
			return list[0].Count
		}
		if len(s.New) != x.fresh || s.Alarming() != (x.fresh > 0) || count(s.Suppressed) != x.used || count(s.Expired) != x.expired || s.Failures != 3-x.used {
			t.Errorf("%s: %d new, %d failures, suppressed %+v, expired %+v", name, len(s.New), s.Failures, s.Suppressed, s.Expired)
		}
		if len(s.Unused) != 1 || s.Unused[0].Entry != 2 {
			t.Errorf("%s: unused %+v", name, s.Unused)
		}
		var text bytes.Buffer
		if err := s.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "entry 2, until 2999-01-01: gone") || !strings.Contains(text.String(), "entry 1") {
			t.Errorf("%s: the text does not tell the suppressions:\n%s", name, text.String())
		}
	}
}

// A label suppresses its entry, and not its cluster.
func TestSuppressedByLabel(t *testing.T) {
	c, ids := filled(t, failure{what: "good", cause: "one", ago: time.Hour}, failure{what: "good", cause: "one", ago: 2 * time.Hour})
	run := night1(t, options(c))
	path := filepath.Join(c.EntryDir(ids[0]))
	if _, err := c.Add(t.Context(), path, corpus.AddOptions{Labels: map[string]string{suppress.LabelKey: "soon"}}); err == nil {
		t.Error("a label without a day is accepted")
	}
	if _, err := c.Add(t.Context(), path, corpus.AddOptions{Labels: map[string]string{suppress.LabelKey: "2999-01-01 a broken disk"}}); err != nil {
		t.Fatal(err)
	}
	s := summary(t, c, run)
	if len(s.New) != 1 || s.New[0].Count != 1 || len(s.Suppressed) != 1 || s.Suppressed[0].Reason != "a broken disk" || s.Suppressed[0].Recent != 1 {
		t.Errorf("new %+v, suppressed %+v", s.New, s.Suppressed)
	}
}
