package page

import (
	"context"
	"testing"
	"time"

	"diagnose/corpus"
)

// A state is made again only after a change of the corpus, and a followed one is never waited for.
func TestState(t *testing.T) {
	c := week(t)
	s := served(t, c, "")
	at := now
	s.keep.now = func() time.Time { return at }
	get := func() *state {
		t.Helper()
		st, err := s.keep.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	label := func(value string) {
		t.Helper()
		w, err := corpus.Change(t.Context(), c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := w.Label(t.Context(), digest(1), map[string]string{"owner": value}, nil); err != nil {
			t.Fatal(err)
		}
	}
	first := get()
	if at = at.Add(2 * fresh); get().made != first.made {
		t.Error("an unchanged corpus was read again")
	}
	label("ann")
	if get().made != first.made {
		t.Error("it was looked at within a second")
	}
	if at = at.Add(2 * fresh); get().made == first.made || get().entries[get().byID[digest(1)]].Labels["owner"] != "ann" {
		t.Error("a change was not seen")
	}
	second := get()
	if at = at.Add(2 * stale); get().made == second.made {
		t.Error("an old state was not made again")
	}
	s.keep.now = time.Now
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.keep.follow(ctx, func(err error) { t.Error(err) })
	label("bob")
	for end := time.Now().Add(20 * time.Second); get().entries[get().byID[digest(1)]].Labels["owner"] != "bob"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a change was not followed")
		}
	}
}
