package tracker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/reports/tracker/trackertest"
)

const testDigest = "0123456789abcdef0123456789abcdef"

func testReport() *Report {
	now := time.Now()
	return &Report{Digest: testDigest, Version: "1.2", Count: 3, Recent: 2, Earlier: 1, First: now.Add(-48 * time.Hour), Last: now, Since: now.Add(-24 * time.Hour), Example: "ab12",
		Case: &evidence.Case{Program: evidence.Program{Exe: "/srv/bin/server", Args: "server --password hunter2"},
			Failure: evidence.Failure{Kind: evidence.Abort, Proof: evidence.FromCore, Sentence: "abort in withdraw"}},
		BackSince: func(time.Time) string { return "" }}
}

func each(t *testing.T, f func(t *testing.T, s *trackertest.Server)) {
	for _, kind := range append(slices.Clone(trackertest.Kinds), trackertest.JiraServer) {
		t.Run(kind, func(t *testing.T) { t.Parallel(); f(t, trackertest.New(t, kind)) })
	}
}

// opened opens the tracker of a server. Waits are counted and not carried out.
func opened(t *testing.T, s *trackertest.Server, dry bool) (*hosted, *[]time.Duration) {
	t.Helper()
	tr, err := Open(s.Spec(), Options{Token: Secret{trackertest.Token}, User: s.User(), DryRun: dry})
	if err != nil {
		t.Fatal(err)
	}
	h := tr.(*hosted)
	var waits []time.Duration
	h.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	return h, &waits
}

func upsert(t *testing.T, tr Tracker, r *Report, want Action) Result {
	t.Helper()
	got, err := tr.Upsert(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Action != want {
		t.Fatalf("%+v, want %s", got, want)
	}
	return got
}

func TestKeys(t *testing.T) {
	forged := "x\nKey: diagnose" + strings.Repeat("f", 32) + "\nmore\n\nKey: " + Key(testDigest) + "\r\n"
	if keyOf(forged) != Key(testDigest) || keyOf("see Key: "+Key(testDigest)) != "" || len(Key(testDigest)) != 40 {
		t.Error("the last line does not count")
	}
	r := testReport()
	r.Digest = "../../etc"
	if _, err := (&directory{path: t.TempDir(), now: time.Now}).Upsert(context.Background(), r); err == nil {
		t.Error("a digest that is none is taken")
	}
}
