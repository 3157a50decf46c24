package corpus

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// A label is set, replaced and removed, the history has it, and the revision is another one.
func TestLabel(t *testing.T) {
	c := create(t)
	id := add(t, c, recording(t, filepath.Join(t.TempDir(), "r"), 0))
	labels := func() map[string]string { return listed(t, c, Filter{})[0].Labels }
	before, err := c.Revision()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		set    map[string]string
		remove []string
		want   map[string]string
	}{
		{map[string]string{"host": "a", "version": "1"}, nil, map[string]string{"host": "a", "version": "1"}},
		{map[string]string{"host": "b"}, []string{"version", "missing"}, map[string]string{"host": "b"}},
		{nil, []string{"host"}, nil},
	} {
		if err := c.Label(t.Context(), id, x.set, x.remove); err != nil {
			t.Fatal(err)
		}
		if got := labels(); !maps.Equal(got, x.want) {
			t.Errorf("%v, want %v", got, x.want)
		}
	}
	history, err := c.History(t.Context(), id)
	if err != nil || len(history) != 4 || history[2].What != "labelled" || history[2].Detail != "host=b, without version" {
		t.Errorf("%+v, %v", history, err)
	}
	if after, err := c.Revision(); err != nil || after == before {
		t.Errorf("%+v, %v: the revision before was the same", after, err)
	}
	var input *InputError
	for id, set := range map[string]map[string]string{id: {"a b": "c"}, strings.Repeat("0", 32): {"a": "b"}} {
		if err := c.Label(t.Context(), id, set, nil); !errors.As(err, &input) {
			t.Errorf("%v: %v", set, err)
		}
	}
}

// All that trackers were told is listed by cluster, but for claims.
func TestTickets(t *testing.T) {
	c := create(t)
	for _, x := range []struct{ tracker, digest, issue string }{{"b", "one", "17"}, {"a", "one", "4"}, {"a", "two", ""}, {AlertPrefix + "x", "two", "new"}} {
		if _, err := c.ClaimTracked(t.Context(), x.tracker, x.digest); err != nil {
			t.Fatal(err)
		}
		if x.issue == "" {
			continue
		}
		if err := c.FinishTracked(t.Context(), x.tracker, x.digest, "opened", &Tracked{Issue: x.issue, Count: 2, Last: start, At: start}); err != nil {
			t.Fatal(err)
		}
	}
	if owed, err := c.Owed(t.Context(), "a"); err != nil || len(owed) != 1 || !owed["two"] {
		t.Errorf("%v, %v", owed, err)
	}
	all, err := c.Tickets(t.Context())
	if err != nil || len(all) != 1 || len(all["one"]) != 2 || all["one"][0].Tracker != "a" || all["one"][1].Issue != "17" || !all["one"][0].At.Equal(start) {
		t.Errorf("%+v, %v", all, err)
	}
}
