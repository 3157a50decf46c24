package nightly

import (
	"slices"
	"testing"
	"time"

	"diagnose/corpus"
)

// New and frequent failures come first, and one of each kind before the second of any.
func TestOrder(t *testing.T) {
	c, ids := filled(t, failure{what: "ok", cause: "old"})
	night1(t, options(c))
	entry := func(id, program string, ago time.Duration, diagnosis *corpus.Diagnosis) corpus.Entry {
		return corpus.Entry{ID: id, Program: program, FailedAt: time.Unix(1e9, 0).Add(-ago), Diagnosis: diagnosis}
	}
	known := &corpus.Diagnosis{Cause: "c1"}
	todo := []corpus.Entry{entry("k1", "a", 0, known), entry("k2", "a", 1, known), entry("n1", "b", 0, nil)}
	var got []string
	for _, e := range order(todo, todo, time.Unix(0, 0)) {
		got = append(got, e.ID)
	}
	if want := []string{"n1", "k1", "k2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Entries of a corpus: three that look alike, one of which is diagnosed.
	put(t, c, 5, failure{what: "ok", cause: "x"})
	list, err := c.Undiagnosed(t.Context(), "v2")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if out := order(list, list, time.Unix(0, 0)); len(out) != 2 || !slices.ContainsFunc(out, func(e corpus.Entry) bool { return e.ID == ids[0] }) {
		t.Errorf("%+v", out)
	}
}
