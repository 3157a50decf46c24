package nightly

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/replay/record"
)

func TestRegressions(t *testing.T) {
	c, _ := filled(t, failure{what: "ok", cause: "copy", ago: 40 * time.Hour})
	s := summary(t, c, night1(t, options(c)))
	if err := s.Told(t.Context(), c); err != nil || len(s.New) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := c.Fixed(t.Context(), s.New[0].Digest, time.Now().Add(-35*time.Hour), "in 1.4"); err != nil {
		t.Fatal(err)
	}
	// The recordings' build is 00ff, which had failed before the fix.
	put(t, c, 1, failure{what: "ok", cause: "copy", ago: time.Hour})
	if s = summary(t, c, night1(t, options(c))); len(s.Back) != 0 || len(s.Known) != 1 {
		t.Errorf("an old build is a regression: %+v", s)
	}
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Minute)
	m := record.Manifest{PID: 1, Outcome: record.Outcome{Kind: record.OutcomeSignal, Signal: 6}, Times: record.Times{Started: at, Ended: &at},
		Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank", "ok", "copy"}, BuildID: "11ff"}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	a, err := c.Add(t.Context(), dir, corpus.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s = summary(t, c, night1(t, options(c)))
	if len(s.Back) != 1 || s.Back[0].Back != a.ID || s.Back[0].Recent != 2 || s.Back[0].Trend != "rising" || !s.Alarming() {
		t.Fatalf("%+v", s)
	}
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil || !strings.Contains(text.String(), "Fixed, and back") || !strings.Contains(text.String(), "(in 1.4)") {
		t.Errorf("%s%v", text.String(), err)
	}
	if err := s.Told(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s = summary(t, c, night1(t, options(c))); len(s.Back) != 0 || len(s.Known) != 1 || s.Alarming() {
		t.Errorf("told twice: %+v", s)
	}
}
