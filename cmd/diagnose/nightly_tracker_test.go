package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/internal/crashtest"
	"diagnose/reports/tracker"
	"diagnose/reports/tracker/trackertest"
)

// nights is a corpus of crashes of one defect, and the nights over it that report to one tracker.
type nights struct {
	t        *testing.T
	dir, out string
	token    string
	spec     string
	said     bytes.Buffer // all that the command printed
	builds   map[string]string
}

func newNights(t *testing.T, spec, token string) *nights {
	t.Helper()
	n := &nights{t: t, dir: filepath.Join(t.TempDir(), "corpus"), out: filepath.Join(t.TempDir(), "out"), spec: spec, token: token, builds: map[string]string{}}
	n.fail("first")
	return n
}

// fail adds a crash to the corpus, of a build with a name.
func (n *nights) fail(build string) {
	n.t.Helper()
	if n.builds[build] == "" {
		n.builds[build] = crashtest.Compile(n.t, crashtest.Program{Source: "login.c", Text: nullRead + "\nint " + build + ";\n", Flags: []string{"-O0"}})
	}
	core := crashtest.Core(n.t, n.builds[build], crashtest.Run{})
	if got := diagnose(n.t, nil, "corpus", "add", core, "--corpus", n.dir); got.status != exitOK {
		n.t.Fatalf("%+v", got)
	}
}

// runNight runs a night. It returns what the tracker was told, and the exit status.
func (n *nights) runNight(args ...string) (*nightly.Tracking, int) {
	n.t.Helper()
	var s nightly.Summary
	text, status := n.runText(append(args, "--format", "json")...)
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		n.t.Fatalf("status %d: %v: %s", status, err, n.said.String())
	}
	if s.Tracking == nil {
		n.t.Fatalf("the summary has no tracker: %s", text)
	}
	return s.Tracking, status
}

func (n *nights) runText(args ...string) (string, int) {
	n.t.Helper()
	all := append([]string{"nightly", "--corpus", n.dir, "--out", n.out, "--tracker", n.spec}, args...)
	got := diagnoseWith(n.t, []string{tracker.TokenVariable + "=" + n.token, tracker.UserVariable + "=" + trackertest.User}, all...)
	n.said.WriteString(got.stdout + got.stderr)
	if got.status != exitOK && got.status != exitNewCause {
		n.t.Fatalf("%q: status %d: %s%s", args, got.status, got.stdout, got.stderr)
	}
	return got.stdout, got.status
}

// told runs a night that reports the one cause.
func (n *nights) told(want tracker.Action, args ...string) nightly.Tracked {
	n.t.Helper()
	k, _ := n.runNight(args...)
	if len(k.Issues) != 1 || k.Issues[0].Action != want || k.Error != "" || k.Issues[0].Error != "" {
		n.t.Fatalf("%+v, want one that is %s", k, want)
	}
	return k.Issues[0]
}

// quiet runs a night that has nothing to report.
func (n *nights) quiet() {
	n.t.Helper()
	if k, status := n.runNight(); len(k.Issues) != 0 || k.Error != "" || status != exitOK {
		n.t.Fatalf("status %d: %+v, want nothing", status, k)
	}
}

// aDayLater changes the corpus as if the tracker had been told yesterday.
func (n *nights) aDayLater() {
	n.t.Helper()
	c, err := corpus.Change(n.t.Context(), n.dir)
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	clusters, err := c.Clusters(n.t.Context())
	if err != nil || len(clusters) != 1 {
		n.t.Fatalf("%d clusters, %v", len(clusters), err)
	}
	tr, err := tracker.Open(n.spec, tracker.Options{})
	if err != nil {
		n.t.Fatal(err)
	}
	was, err := c.ClaimTracked(n.t.Context(), tr.Name(), clusters[0].Digest)
	if err != nil || was.Issue == "" {
		n.t.Fatalf("%+v, %v", was, err)
	}
	was.At = was.At.Add(-24 * time.Hour)
	if err := c.FinishTracked(n.t.Context(), tr.Name(), clusters[0].Digest, "a day later", &was); err != nil {
		n.t.Fatal(err)
	}
}

// hides checks that the token is in nothing that was printed or written, in no form in which it is
// sent.
func (n *nights) hides(where ...string) {
	n.t.Helper()
	forms := []string{n.token, url.QueryEscape(n.token), base64.StdEncoding.EncodeToString([]byte(n.token)),
		base64.StdEncoding.EncodeToString([]byte(trackertest.User + ":" + n.token))}
	look := func(name string, text []byte) {
		for _, form := range forms {
			if bytes.Contains(text, []byte(form)) {
				n.t.Errorf("the token is in %s, as %s", name, form)
			}
		}
	}
	look("the printed text", n.said.Bytes())
	for _, dir := range append(where, n.dir, n.out) {
		files := 0
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			look(path, text)
			return err
		})
		if err != nil || files == 0 {
			n.t.Errorf("%s: %d files, %v", dir, files, err)
		}
	}
}

// The nights of a team, with a tracker on the network: tried out, down, limited, opened
// once, added to, closed, and back. The kinds that are not asked here are in the matrix.
func TestNightlyTracker(t *testing.T) {
	for _, kind := range trackertest.Kinds {
		if kind != "github" && kind != "gitea" && os.Getenv("DIAGNOSE_MATRIX") != "full" {
			continue
		}
		t.Run(kind, func(t *testing.T) { t.Parallel(); testNightlyTracker(t, trackertest.New(t, kind)) })
	}
}

func testNightlyTracker(t *testing.T, s *trackertest.Server) {
	n := newNights(t, s.Spec(), trackertest.Token)
	text, status := n.runText("--dry-run")
	if status != exitNewCause || !strings.Contains(text, "What would be told to "+s.Kind+":") || !strings.Contains(text, "opened") || !strings.Contains(text, "null pointer read of session->user->name") {
		t.Errorf("status %d: %s", status, text)
	}
	if s.Changes() != 0 || len(s.Log) == 0 {
		t.Errorf("a dry run sends %q", s.Log)
	}
	if k, status := n.runNight("--dry-run"); status != exitNewCause || !k.DryRun || len(k.Issues) != 1 || k.Issues[0].Issue != "" {
		t.Errorf("after a dry run: status %d: %+v", status, k)
	}

	// A tracker that fails, and repeats the token in its message, costs the night only its issues.
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"error": true, "message": "down: %[1]v", "errorMessages": ["down: %[1]v"]}`, r.Header)
		return true
	})
	k, status := n.runNight()
	if status != exitNewCause || k.Error == "" || len(k.Issues) != 0 {
		t.Errorf("down: status %d: %+v", status, k)
	}
	s.Answer(nil)
	opened := n.told(tracker.Opened)
	if opened.Issue == "" || !strings.HasPrefix(opened.URL, s.URL) || opened.Note != "" || len(s.Issues) != 1 {
		t.Fatalf("%+v, %d issues", opened, len(s.Issues))
	}
	is := s.Issues[0]
	if !strings.Contains(is.Title, "session->user->name") || !strings.Contains(is.Body, "1 failure so far") || len(is.Comments) > 1 { // GitLab's has the file
		t.Errorf("%+v", is)
	}
	changes := s.Changes()
	n.quiet()
	n.fail("first")
	n.quiet() // the night is not over
	if s.Changes() != changes {
		t.Errorf("a night with nothing to tell sends %q", s.Log)
	}

	// The second night adds to the issue, and waits for a rate limit.
	n.aDayLater()
	limited := false
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if limited || r.Method == http.MethodGet {
			return false
		}
		limited = true
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	comments := len(is.Comments)
	if got := n.told(tracker.Commented); got.Issue != opened.Issue || !limited {
		t.Errorf("%+v after %q", got, s.Log)
	}
	s.Answer(nil)
	if len(s.Issues) != 1 || len(is.Comments) != comments+1 || !strings.Contains(is.Comments[comments].Body, "2 in all") {
		t.Errorf("%d issues, %+v", len(s.Issues), is.Comments)
	}

	// The issue is closed. A build that had failed before does not open it again, a later one does.
	is.Set(false, "")
	n.fail("first")
	n.aDayLater()
	if n.told(tracker.LeftClosed); is.Open {
		t.Error("it was opened again for a build that had failed before")
	}
	n.fail("later")
	n.aDayLater()
	if got := n.told(tracker.Reopened); !is.Open || got.Issue != opened.Issue || !strings.Contains(is.Comments[len(is.Comments)-1].Body, "It is back") {
		t.Errorf("%+v, %+v", got, is)
	}

	// A corpus that knows nothing of the issue finds it.
	other := newNights(t, s.Spec(), trackertest.Token)
	if got := other.told(tracker.Quiet); got.Issue != opened.Issue || len(s.Issues) != 1 {
		t.Errorf("%+v, %d issues", got, len(s.Issues))
	}
	for _, is := range s.Issues {
		n.said.WriteString(is.Title + is.Body + fmt.Sprint(is.Comments, is.Files))
	}
	n.hides()
}

// The same nights with a directory, which is the tracker if none is named.
func TestNightlyTrackerDirectory(t *testing.T) {
	n := newNights(t, "", "")
	n.spec = "dir:" + filepath.Join(n.out, issuesName)
	n.token = trackertest.Token
	if got := n.told(tracker.Opened, "--dry-run"); got.URL != "" {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(n.out, issuesName)); err == nil {
		t.Fatal("a dry run makes issues")
	}
	path := n.told(tracker.Opened).URL
	n.fail("first")
	n.aDayLater()
	n.told(tracker.Commented)
	if err := os.WriteFile(filepath.Join(path, "state"), []byte("closed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.fail("later")
	n.aDayLater()
	n.told(tracker.Reopened)
	n.quiet()
	if list, err := os.ReadDir(filepath.Join(n.out, issuesName)); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	n.hides()
}

// A wrong flag about a tracker is reported before the night starts, and without the token.
func TestNightlyTrackerUsage(t *testing.T) {
	open := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(open, []byte(trackertest.Token), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, env []string
		says      string
	}{
		{[]string{"--tracker", "github"}, nil, "names no tracker"},
		{[]string{"--tracker", "gitea:http://example.org/o/r"}, nil, "https://"},
		{[]string{"--tracker", "gitea:https://me:" + url.QueryEscape(trackertest.Token) + "@example.org/o/r"}, nil, "a name or a password"},
		{[]string{"--tracker", "github:o/r", "--tracker-token-file", open}, nil, "chmod 600"},
		{[]string{"--tracker", "github:o/r"}, []string{tracker.TokenVariable + "=" + trackertest.Token + "\nX-More: 1"}, "no token has"},
		{[]string{"--dry-run"}, nil, "name one with --tracker"},
		{[]string{"--tracker-new", "-1"}, nil, "--tracker-new"},
	} {
		got := diagnoseWith(t, c.env, append([]string{"nightly", "--corpus", t.TempDir()}, c.args...)...)
		if got.status != exitUsage || !strings.Contains(got.stderr, c.says) || strings.Contains(got.stdout+got.stderr, "tok-4f9a") {
			t.Errorf("%q: status %d: %s%s", c.args, got.status, got.stdout, got.stderr)
		}
	}
}

// A program that is recorded while the token is set does not inherit it.
func TestTrackerTokenNotRecorded(t *testing.T) {
	cmd := recordCommand(t, "--output", "recordings", "--", "/bin/sh", "-c", `echo "token: $`+tracker.TokenVariable+`, user: $`+tracker.UserVariable+`"; kill -SEGV $$`)
	cmd.Env = append(cmd.Env, tracker.TokenVariable+"="+trackertest.Token, tracker.UserVariable+"="+trackertest.User)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Run() // it dies of a signal
	if got := stdout.String(); got != "token: , user: "+trackertest.User+"\n" {
		t.Errorf("the program sees %q", got)
	}
	n := &nights{t: t, dir: cmd.Dir, out: filepath.Join(cmd.Dir, "recordings"), token: trackertest.Token}
	n.hides()
	if names := recordings(t, cmd); len(names) != 1 {
		t.Errorf("recordings %q", names)
	}
}
