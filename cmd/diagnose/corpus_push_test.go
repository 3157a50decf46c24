package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/share"
)

// listening starts an engine that the command can connect to, and returns its URL with the token.
func listening(t *testing.T) string {
	t.Helper()
	s, err := engine.Start(t.Context(), engine.ServerOptions{Dir: filepath.Join(t.TempDir(), "engine"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.URL()
}

func TestCorpusPushAndPull(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	add := diagnose(t, nil, "corpus", "add", recorded(t, 1), "--corpus", from, "--label", "host=ci-7")
	other := diagnose(t, nil, "corpus", "add", recorded(t, 2), "--corpus", from)
	if add.status != exitOK || other.status != exitOK {
		t.Fatalf("%+v, %+v", add, other)
	}
	id, _, _ := strings.Cut(add.stdout, " ")
	environ := []string{"DIAGNOSE_ENGINE=" + listening(t), "DIAGNOSE_TEAM=web"}
	push := func(args ...string) outcome {
		t.Helper()
		return diagnoseWith(t, environ, append([]string{"corpus", "push", "--corpus", from}, args...)...)
	}
	if got := push("--label", "host=ci-7"); got.status != exitOK || !strings.HasPrefix(got.stdout, id+"  pushed, ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("by label: %+v", got)
	}
	got := push("--format", "json")
	var pushed []shownPushed
	if err := json.Unmarshal([]byte(got.stdout), &pushed); err != nil || got.status != exitOK || len(pushed) != 2 || pushed[0].Existed || !pushed[1].Existed || pushed[1].ID != id {
		t.Errorf("all: %+v, %v", got, err)
	}
	pull := func(args ...string) outcome {
		t.Helper()
		return diagnoseWith(t, environ, append([]string{"corpus", "pull", "--corpus", to}, args...)...)
	}
	if got := pull("--team", "desktop"); got.status != exitOK || got.stdout != "0 entries were added, 0 were there\n" {
		t.Errorf("of another team: %+v", got)
	}
	if got := pull(id[:8]); got.status != exitOK || got.stdout != "1 entries were added, 0 were there\n" {
		t.Errorf("by name: %+v", got)
	}
	got = pull("--format", "json")
	var pulled share.Pulled
	if err := json.Unmarshal([]byte(got.stdout), &pulled); err != nil || got.status != exitOK || len(pulled.Added) != 1 || pulled.Existed != 1 {
		t.Errorf("all: %+v, %v", got, err)
	}
	if got := pull("nothing"); got.status != exitInput || !strings.Contains(got.stderr, `no entry "nothing"`) {
		t.Errorf("%+v", got)
	}
	shown := diagnose(t, nil, "corpus", "show", id, "--corpus", to)
	if !strings.Contains(shown.stdout, "imported:  it came from elsewhere, as nats://127.0.0.1:") || !strings.Contains(shown.stdout, ", team web: /") {
		t.Errorf("%+v", shown)
	}
}

func TestCorpusPushWithoutAnEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	if got := diagnose(t, nil, "corpus", "add", recorded(t, 1), "--corpus", dir); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	for name, want := range map[string]struct {
		status int
		text   string
		args   []string
	}{
		"none":        {exitUsage, "--engine is missing", nil},
		"another":     {exitUsage, "no URL of an engine", []string{"--engine", "http://localhost"}},
		"team":        {exitUsage, "no name of a team", []string{"--engine", "nats://localhost", "--team", "A B"}},
		"credential":  {exitUsage, "no such file", []string{"--engine", "nats://localhost", "--engine-credentials", dir + ".creds"}},
		"unreachable": {exitInput, "does not answer", []string{"--engine", "nats://user:secret@127.0.0.1:1"}},
	} {
		got := diagnose(t, nil, append([]string{"corpus", "push", "--corpus", dir}, want.args...)...)
		if got.status != want.status || !strings.Contains(got.stderr, want.text) || strings.Contains(got.stderr, "secret") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRecordPush(t *testing.T) {
	url := listening(t)
	cmd := recordCommand(t, "--push", url, "--team", "web", "--label", "job=7", "--", "sh", "-c", "exit 3")
	status, _, stderr := ended(t, cmd)
	if status.ExitStatus() != 3 || !strings.Contains(stderr, "diagnose: it was pushed as ") || !strings.Contains(stderr, " --team web\n") || strings.Contains(stderr, url) {
		t.Errorf("%v: %s", status, stderr)
	}
	const flaky = `n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; [ $n != 1 ]`
	cmd = recordCommand(t, "--push", url, "--team", "web", "--repeat", "3", "--label", "job=8", "--", "sh", "-c", flaky)
	status, _, stderr = ended(t, cmd)
	if status.ExitStatus() != 1 || strings.Count(stderr, "it was pushed as ") != 1 {
		t.Errorf("%v: %s", status, stderr)
	}
	cmd = recordCommand(t, "--push", url, "--team", "web", "--", "true")
	if status, _, stderr := ended(t, cmd); status.ExitStatus() != 0 || strings.Contains(stderr, "pushed") {
		t.Errorf("a run that passed: %v: %s", status, stderr)
	}
	dir := filepath.Join(t.TempDir(), "corpus")
	if got := diagnose(t, nil, "corpus", "pull", "--engine", url, "--team", "web", "--corpus", dir); got.stdout != "2 entries were added, 0 were there\n" {
		t.Errorf("%+v", got)
	}
	store, err := corpus.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list, err := store.List(t.Context(), corpus.Filter{})
	if err != nil || len(list) != 2 || list[0].Labels["job"] != "8" || list[1].Labels["job"] != "7" || list[1].Ended != "exit-3" || !list[1].Imported {
		t.Errorf("%+v, %v", list, err)
	}
}

// A push that fails costs neither the recording nor the exit status.
func TestRecordPushFails(t *testing.T) {
	cmd := recordCommand(t, "--push", "nats://user:secret@127.0.0.1:1", "--label", "job=a b", "--", "sh", "-c", "exit 3")
	status, _, stderr := ended(t, cmd)
	if status.ExitStatus() != 3 || strings.Contains(stderr, "secret") ||
		!strings.Contains(stderr, "diagnose: recordings/sh-0001-exit-3 was not pushed, and is kept: ") ||
		!strings.Contains(stderr, "to push it later: diagnose corpus add recordings/sh-0001-exit-3 --label 'job=a b', and then: diagnose corpus push --engine nats://127.0.0.1:1\n") {
		t.Errorf("%v: %s", status, stderr)
	}
	if got := recordings(t, cmd); len(got) != 1 {
		t.Errorf("%q", got)
	}
	for _, args := range [][]string{{"--label", "k=v"}, {"--team", "web"}, {"--push", "x"}, {"--push", "nats://localhost", "--label", "k"}} {
		cmd := recordCommand(t, append(args, "--", "sh", "-c", "touch ran")...)
		status, _, stderr := ended(t, cmd)
		if _, err := os.Stat(filepath.Join(cmd.Dir, "ran")); status.ExitStatus() != exitUsage || err == nil {
			t.Errorf("%q: %v, %v: %s", args, status, err, stderr)
		}
	}
}
