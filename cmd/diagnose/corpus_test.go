package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/replay/record"
	"diagnose/reports"
)

// recorded is the recording of a run of bank, without what happened in it.
func recorded(t *testing.T, number int) string {
	t.Helper()
	dir := t.TempDir()
	at := time.Date(2026, 3, 1, 12, 0, number, 0, time.UTC)
	m := record.Manifest{PID: 4711, Outcome: record.Outcome{Kind: record.OutcomeSignal, Signal: 6}, Times: record.Times{Started: at, Ended: &at},
		Program: record.Program{Path: "/srv/bin/bank", Args: []record.Text{"bank"}, BuildID: "00ff"}}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A command that asks for a missing entry or cluster lists those that exist.
func TestCorpusWithoutWhatIsAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	store, err := corpus.Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list := func(args ...string) outcome {
		t.Helper()
		return diagnose(t, nil, append([]string{"corpus", "list", "--corpus", dir}, args...)...)
	}
	if got := list(); got.status != exitOK || got.stdout != "no failures\n" {
		t.Errorf("an empty corpus: %+v", got)
	}
	for i := range 2 {
		if _, err := store.Add(t.Context(), recorded(t, i), corpus.AddOptions{Labels: map[string]string{"host": "ci-7"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, choice := range []string{"--program=nothing", "--since=1h", "--label=host=ci-8", "--cluster=ff"} {
		if got := list(choice); got.status != exitOK || got.stdout != "no failures are as chosen; the corpus has 2, of bank\n" {
			t.Errorf("%s: %+v", choice, got)
		}
		if got := list(choice, "--format=json"); got.status != exitOK {
			t.Errorf("%s: %+v", choice, got)
		} else {
			fits(t, "corpus", got.stdout)
		}
	}
	if got := list("--program=bank"); got.status != exitOK || strings.Count(got.stdout, "ci-7") != 2 {
		t.Errorf("%+v", got)
	}
	got := diagnose(t, nil, "corpus", "show", "nothing", "--corpus", dir)
	if got.status != exitInput || !strings.Contains(got.stderr, `no entry "nothing"`) || !strings.Contains(got.stderr, `no cluster "nothing"`) {
		t.Errorf("%+v", got)
	}
}

// A cluster is shown with the newest of its failures, without those that share only its stack.
func TestClusterText(t *testing.T) {
	g := corpus.Cluster{Digest: strings.Repeat("ab", 16), Count: 7, Stacks: 1}
	var members []corpus.Entry
	for i := range 8 {
		d := &corpus.Diagnosis{Stack: g.Digest}
		if i == 2 {
			d.Cause = strings.Repeat("cd", 16)
		}
		members = append(members, corpus.Entry{ID: fmt.Sprintf("%024d", i), Diagnosis: d, Labels: map[string]string{"host": fmt.Sprint("ci-", i)}})
	}
	var b bytes.Buffer
	out := &reports.Listing{}
	clusterText(out, &shownCorpus{Clusters: []corpus.Cluster{g}}, members)
	if err := out.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for i := range 8 {
		if got, want := strings.Contains(text, fmt.Sprint("host=ci-", i)), i < 6 && i != 2; got != want {
			t.Errorf("failure %d is shown: %t\n%s", i, got, text)
		}
	}
	for _, says := range []string{"7 with 1 stack,", "... and 2 more: diagnose corpus list --cluster abababababab\n"} {
		if !strings.Contains(text, says) {
			t.Errorf("%q is not in\n%s", says, text)
		}
	}
}
