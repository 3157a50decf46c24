package tracker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/evidence"
)

const testDigest = "0123456789abcdef0123456789abcdef"

func testReport() *Report {
	now := time.Now()
	return &Report{Digest: testDigest, Version: "1.2", Count: 3, Recent: 2, Earlier: 1, First: now.Add(-48 * time.Hour), Last: now, Since: now.Add(-24 * time.Hour), Example: "ab12",
		Case: &evidence.Case{Program: evidence.Program{Exe: "/srv/bin/server", Args: "server --password hunter2"},
			Failure: evidence.Failure{Kind: evidence.Abort, Proof: evidence.FromCore, Sentence: "abort in withdraw"}},
		BackSince: func(time.Time) string { return "" }}
}

func each(t *testing.T, f func(t *testing.T, s *fakeTracker)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { t.Parallel(); f(t, newFake(t, kind)) })
	}
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

// From the first night on: opened, commented once a night, left closed, reopened.
func TestContractLife(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		h, _ := s.tracker(false)
		r := testReport()
		first := upsert(t, h, r, Opened)
		if !first.Attached || first.Note != "" || !strings.HasPrefix(first.URL, s.URL) {
			t.Errorf("%+v", first)
		}
		is := s.issues[0]
		if !strings.Contains(is.body, "3 failures so far") || keyOf(is.body) != Key(testDigest) || is.title != "abort in withdraw" || strings.Contains(is.body+strings.Join(is.files, ""), "hunter2") {
			t.Errorf("%q: %q", is.title, is.body)
		}
		if s.kind != "github" && (len(is.files) != 1 || s.kind != "gitlab" && !strings.Contains(is.files[0], "abort in withdraw")) {
			t.Errorf("files %q", is.files)
		}
		r.Issue, r.Attached = first.Issue, true
		upsert(t, h, r, Commented)
		upsert(t, h, r, Quiet)
		r.Issue = "" // a corpus that knows nothing of it
		upsert(t, h, r, Quiet)
		last := is.comments[len(is.comments)-1].body
		if !strings.Contains(last, "2 failures since") || !strings.Contains(last, "3 in all") {
			t.Errorf("%q", last)
		}
		is.set(false, "")
		was := is.closed
		upsert(t, h, r, LeftClosed)
		r.BackSince = func(closed time.Time) string {
			if d := closed.Sub(was); d > time.Second || d < -time.Second {
				t.Errorf("closed at %v, want %v", closed, was)
			}
			return "e7"
		}
		if got := upsert(t, h, r, Reopened); !is.open || got.Issue != first.Issue {
			t.Errorf("%+v", got)
		}
		if last := is.comments[len(is.comments)-1].body; !strings.Contains(last, "It is back") || !strings.Contains(last, "e7") {
			t.Errorf("%q", last)
		}
		upsert(t, h, r, Quiet)
		if len(s.issues) != 1 {
			t.Errorf("%d issues", len(s.issues))
		}
	})
}

func TestContractClosedForGood(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		h, _ := s.tracker(false)
		r := testReport()
		upsert(t, h, r, Opened)
		r.BackSince = func(time.Time) string { return "e7" }
		reasons := []string{"duplicate", "not_planned"}
		switch s.kind {
		case "gitea": // it has no reasons
			return
		case "gitlab":
			reasons = reasons[:1]
		}
		for _, reason := range reasons {
			s.issues[0].open, s.issues[0].reason, s.issues[0].closed = false, reason, time.Now()
			upsert(t, h, r, LeftClosed)
			if s.issues[0].open {
				t.Errorf("%s: it is open", reason)
			}
		}
	})
}

// While the index does not have the issue yet, there is one all the same.
func TestContractSearchLag(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		s.lag = true
		for range 70 { // the issue is not on the first page, later
			s.add("another", "Key: none")
		}
		h, _ := s.tracker(false)
		upsert(t, h, testReport(), Opened)
		other, _ := s.tracker(false)
		r := testReport()
		if s.kind == "jira" {
			if got := upsert(t, other, r, Quiet); len(got.Duplicates) != 1 {
				t.Errorf("%+v", got)
			}
		} else {
			for range 60 {
				s.add("another", "Key: none")
			}
			upsert(t, other, r, Commented)
		}
		ours := 0
		for _, is := range s.issues {
			if is.open && keyOf(is.body) == Key(testDigest) {
				ours++
			}
		}
		if ours != 1 {
			t.Errorf("%d issues are open", ours)
		}
	})
}

// Two hosts that both saw no issue open one each; one stays.
func TestContractTwoHosts(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		s.lag = s.kind == "jira"
		var both sync.WaitGroup
		both.Add(2)
		var once sync.Map
		s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == "POST" {
				if _, seen := once.LoadOrStore(r.Header.Get("X-Host"), true); !seen {
					both.Done()
					both.Wait()
				}
			}
			return false
		})
		var group sync.WaitGroup
		results := make([]Result, 2)
		for i := range results {
			h, _ := s.tracker(false)
			h.header.Set("X-Host", fmt.Sprint(i))
			group.Go(func() {
				var err error
				if results[i], err = h.Upsert(context.Background(), testReport()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if open := s.opened(); len(open) != 1 || open[0] != 1 {
			t.Errorf("open: %v; %+v", open, results)
		}
		if results[0].Issue != results[1].Issue || (results[0].Action == Opened) == (results[1].Action == Opened) {
			t.Errorf("%+v", results)
		}
		want := 2
		if s.kind == "bugzilla" { // whose aliases are unique
			want = 1
		}
		if len(s.issues) != want {
			t.Errorf("%d issues were made", len(s.issues))
		}
		s.lag = false
		s.answer(nil)
		h, _ := s.tracker(false)
		if got := upsert(t, h, testReport(), Commented); got.Issue != results[0].Issue {
			t.Errorf("%+v", got)
		}
	})
}

// A host that died between opening and looking leaves two; the next night closes one.
func TestContractLeftOverDuplicate(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		for range 2 {
			is := s.add("x", "text\n\nKey: "+Key(testDigest)+"\n")
			is.labels = []string{Key(testDigest)}
		}
		h, _ := s.tracker(false)
		if got := upsert(t, h, testReport(), Commented); len(got.Duplicates) != 1 {
			t.Errorf("%+v", got)
		}
		if open := s.opened(); len(open) != 1 || open[0] != 1 {
			t.Errorf("open: %v", open)
		}
	})
}

func posts(s *fakeTracker) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.log {
		if !strings.HasPrefix(l, "GET ") {
			n++
		}
	}
	return n
}

// What a tracker says no to: the right kind, once, and without the token.
func TestContractNo(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		for status, want := range map[int]Kind{400: Refused, 401: Denied, 403: Denied, 404: Missing, 409: Refused, 410: Missing, 422: Refused} {
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == "GET" {
					return false
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"error": true, "message": "no\u001b[2J: %s", "errorMessages": ["no: %s"]}`, testToken, testToken)
				return true
			})
			s.log = nil
			h, _ := s.tracker(false)
			_, err := h.Upsert(context.Background(), testReport())
			if kindOf(err) != want || Final(err) != (want != Refused) || posts(s) != 1 {
				t.Errorf("%d: %v after %d requests, want %s", status, err, posts(s), want)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, h.secret); strings.Contains(text, testToken) || strings.ContainsRune(err.Error(), 0x1b) || !strings.Contains(text, "no") {
				t.Errorf("%d: %q", status, text)
			}
		}
	})
}

// Limits are waited for as long as the tracker says, and 5xx with growing pauses.
func TestContractWaits(t *testing.T) {
	reset := time.Now().Add(90 * time.Second)
	for name, c := range map[string]struct {
		status    int
		header    map[string]string
		body      string
		low, high time.Duration
	}{
		"Retry-After":           {429, map[string]string{"Retry-After": "7"}, "", 6 * time.Second, 8 * time.Second},
		"date":                  {503, map[string]string{"Retry-After": reset.UTC().Format(http.TimeFormat)}, "", 80 * time.Second, 92 * time.Second},
		"GitHub's limit":        {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(reset.Unix())}, "", 80 * time.Second, 92 * time.Second},
		"GitLab's limit":        {429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": fmt.Sprint(reset.Unix())}, "", 80 * time.Second, 92 * time.Second},
		"Jira's limit":          {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset.UTC().Format("2006-01-02T15:04Z")}, "", 20 * time.Second, 92 * time.Second},
		"GitHub's second limit": {403, nil, `{"message": "You have exceeded a secondary rate limit."}`, 59 * time.Second, 62 * time.Second},
		"out of order":          {502, nil, "<html>", 400 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFake(t, "github")
			left := 1
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if left--; left < 0 {
					return false
				}
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
				return true
			})
			h, waits := s.tracker(false)
			upsert(t, h, testReport(), Opened)
			if len(*waits) == 0 || (*waits)[0] < c.low || (*waits)[0] > c.high {
				t.Errorf("waits %v, want the first from %v to %v", *waits, c.low, c.high)
			}
		})
	}
}

// What lasts longer than the budget is given up, with the time from which it may do.
func TestContractDown(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		s.answer(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
			return true
		})
		h, waits := s.tracker(false)
		_, err := h.Upsert(context.Background(), testReport())
		var e *Error
		if !errors.As(err, &e) || e.Kind != Down || time.Until(e.Until) < 23*time.Hour || len(*waits) != 0 || len(s.log) != 1 {
			t.Errorf("%v, after waits %v and %q", err, *waits, s.log)
		}
		s.answer(func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(500); return true })
		s.log = nil
		if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down || len(s.log) != mostTries || len(*waits) != mostTries-1 {
			t.Errorf("%v after %d requests and waits %v", err, len(s.log), *waits)
		}
		s.Close()
		if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down || !Final(err) {
			t.Errorf("%v", err)
		}
	})
}

// An issue whose answer is lost was made, and is not made again.
func TestContractLostAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		lose := true
		s.after = func(w http.ResponseWriter, r *http.Request) bool {
			if !lose || r.Method != "POST" {
				return false
			}
			lose = false
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			w.Write([]byte(`{"number": 1, "id`))
			return true // the connection is cut
		}
		h, _ := s.tracker(false)
		got := upsert(t, h, testReport(), Opened)
		if len(s.issues) != 1 || got.Issue == "" || got.Note == "" {
			t.Errorf("%d issues, %+v", len(s.issues), got)
		}
		lose = true // that of a comment
		r := testReport()
		r.Issue, r.Attached = got.Issue, true
		n := len(s.issues[0].comments)
		upsert(t, h, r, Commented)
		if len(s.issues[0].comments) != n+1 {
			t.Errorf("%d comments were made", len(s.issues[0].comments)-n)
		}
	})
}

func TestContractSlowAndHuge(t *testing.T) {
	s := newFake(t, "github")
	release := make(chan bool)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	h, _ := s.tracker(false)
	h.http.Timeout = 20 * time.Millisecond
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
	close(release)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		part := []byte(strings.Repeat(" ", 1<<20))
		for range mostAnswer>>20 + 1 {
			if _, err := w.Write(part); err != nil {
				break
			}
		}
		return true
	})
	h.http.Timeout = requestTime
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Refused || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v", err)
	}
	s.answer(func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, "<html>sign in</html>"); return true })
	if _, err := h.Upsert(context.Background(), testReport()); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Upsert(ctx, testReport()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The token goes to no other host, and a request that changes something nowhere else.
func TestContractRedirects(t *testing.T) {
	visits := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	defer other.Close()
	each := func(method string, target func(s *fakeTracker) string) error {
		s := newFake(t, "github")
		s.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || strings.HasPrefix(r.URL.Path, "/moved") {
				return false
			}
			http.Redirect(w, r, target(s), http.StatusMovedPermanently)
			return true
		})
		h, _ := s.tracker(false)
		_, err := h.Upsert(context.Background(), testReport())
		return err
	}
	if err := each("GET", func(*fakeTracker) string { return other.URL }); kindOf(err) != Refused || visits != 0 {
		t.Errorf("%v; %d visits", err, visits)
	}
	if err := each("POST", func(s *fakeTracker) string { return s.URL + "/api/v3/repos/o/r/issues" }); kindOf(err) != Refused {
		t.Errorf("%v", err)
	}
}

func TestContractDryRun(t *testing.T) {
	each(t, func(t *testing.T, s *fakeTracker) {
		h, _ := s.tracker(true)
		if got := upsert(t, h, testReport(), Opened); got.Issue != "" {
			t.Errorf("%+v", got)
		}
		is := s.add("x", "Key: "+Key(testDigest))
		is.labels = []string{Key(testDigest)}
		upsert(t, h, testReport(), Commented)
		is.set(false, "")
		r := testReport()
		r.BackSince = func(time.Time) string { return "e7" }
		upsert(t, h, r, Reopened)
		if posts(s) != 0 || is.open || len(is.comments) != 0 {
			t.Errorf("it changed something: %q", s.log)
		}
	})
}

// Servers and data centers of Jira have no /search/jql, and tokens without an account.
func TestContractJiraServer(t *testing.T) {
	s := newFake(t, "jira")
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+testToken {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		r.Header.Set("Authorization", "Basic bWVAZXhhbXBsZS5vcmc6dG9rLTRmOWErc2VjcmV0Lzc=")
		switch strings.TrimPrefix(r.URL.Path, "/rest/api/2") {
		case "/search/jql":
			w.WriteHeader(404)
			return true
		case "/search":
			r.URL.Path += "/jql"
		}
		return false
	})
	tr, err := Open(s.spec(), Options{Token: Secret{testToken}})
	if err != nil {
		t.Fatal(err)
	}
	tr.(*hosted).sleep = func(context.Context, time.Duration) error { return nil }
	upsert(t, tr, testReport(), Opened)
	upsert(t, tr, testReport(), Commented)
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

func TestCommandless(t *testing.T) {
	in := "/close\n  /assign @x\na /b\n````\n/label ~x\n```\n/y\n````\n> /close\n"
	want := "&#47;close\n  &#47;assign @x\na /b\n````\n| /label ~x\n```\n| /y\n````\n> &#47;close\n"
	if got := commandless(in); got != want {
		t.Errorf("%q", got)
	}
}

func TestOpen(t *testing.T) {
	for spec, want := range map[string]string{
		"github:o/r":                             "https://api.github.com/repos/o/r/issues",
		"github:https://ghe.example.org/o/r":     "https://ghe.example.org/api/v3/repos/o/r/issues",
		"gitlab:g/sub/p":                         "https://gitlab.com/api/v4/projects/g%2Fsub%2Fp/issues",
		"gitea:https://h.example/sub/o/r":        "https://h.example/sub/api/v1/repos/o/r/issues",
		"jira:https://h.example/jira/PRJ?type=X": "https://h.example/jira/rest/api/2",
		"bugzilla:https://h.example/bz/A%2FB/C#": "https://h.example/bz/rest",
		"gitea:http://127.0.0.1:3000/o/r":        "http://127.0.0.1:3000/api/v1/repos/o/r/issues",
		"github:http://example.org/o/r":          "",
		"github:https://user:pw@example.org/o/r": "",
		"github:o":                               "",
		"github:o/..":                            "",
		"gitea:o/r":                              "",
		"jira:https://h.example":                 "",
		"jira:https://h.example/A?kind=1":        "",
		"jira:https://h.example/A%22":            "",
		"ftp:https://h.example/A":                "",
		"github":                                 "",
		"dir:":                                   "",
	} {
		tr, err := Open(spec, Options{})
		if (err == nil) != (want != "") {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if err != nil {
			if strings.Contains(err.Error(), "pw@") {
				t.Errorf("%s: the password is in %v", spec, err)
			}
			continue
		}
		h := tr.(*hosted)
		got := h.base.String()
		switch a := h.api.(type) {
		case *gitHub:
			got += a.path()
		case *gitea:
			got += a.path()
		case *gitLab:
			got += a.path()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		os.Remove(file)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(testToken+"\n", 0o600)
	t.Setenv(TokenVariable, "other")
	if s, err := Token(file); err != nil || s.text != testToken {
		t.Errorf("%v", err)
	}
	if _, set := os.LookupEnv(TokenVariable); set {
		t.Error("the token is still in the environment")
	}
	os.Setenv(TokenVariable, testToken)
	if s, err := Token(""); err != nil || s.text != testToken || strings.Contains(fmt.Sprintf("%v %+v %#v %s", s, s, s, s), testToken) {
		t.Errorf("%v", err)
	}
	t.Setenv(TokenFileVariable, file)
	if s, err := Token(""); err != nil || s.text != testToken {
		t.Errorf("%v", err)
	}
	for text, mode := range map[string]os.FileMode{testToken: 0o644, testToken + "\nmore": 0o600, "": 0o600, testToken + testToken: 0o620, strings.Repeat("x", 9999): 0o600} {
		write(text, mode)
		if s, err := Token(file); err == nil || !s.Empty() || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%v %.9q is taken, or in %v", mode, text, err)
		}
	}
	if _, err := Token(t.TempDir()); err == nil {
		t.Error("a directory is taken")
	}
	t.Setenv(TokenFileVariable, "")
	if s, err := Token(""); err != nil || !s.Empty() {
		t.Errorf("%v", err)
	}
}

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "issues")
	now := time.Now()
	d := &directory{path: dir, now: func() time.Time { return now }}
	r := testReport()
	upsert(t, &directory{path: dir, dry: true, now: d.now}, r, Opened)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("a dry run makes something")
	}
	path := upsert(t, d, r, Opened).URL
	for _, name := range []string{issueName, attachmentName, stateName} {
		if text, err := os.ReadFile(filepath.Join(path, name)); err != nil || len(text) == 0 || strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	upsert(t, d, r, Commented)
	upsert(t, d, r, Quiet)
	now = now.Add(24 * time.Hour)
	upsert(t, &directory{path: dir, dry: true, now: d.now}, r, Commented)
	upsert(t, d, r, Commented)
	state := filepath.Join(path, stateName)
	os.WriteFile(state, []byte("closed\n"), 0o600)
	upsert(t, d, r, LeftClosed)
	r.BackSince = func(closed time.Time) string {
		if time.Since(closed) > time.Minute {
			t.Errorf("closed at %v", closed)
		}
		return "e7"
	}
	upsert(t, d, r, Reopened)
	now = now.Add(24 * time.Hour)
	os.WriteFile(state, []byte("closed"), 0o600)
	upsert(t, d, r, Reopened)
	upsert(t, d, r, Quiet)
	if list, err := os.ReadDir(filepath.Join(path, commentsName)); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
	os.WriteFile(state, []byte("what"), 0o600)
	if _, err := d.Upsert(context.Background(), r); kindOf(err) != Down {
		t.Errorf("%v", err)
	}
}

// Of many hosts at once one opens the issue, and one comments.
func TestDirectoryManyHosts(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []Action{Opened, Commented} {
		var group sync.WaitGroup
		var mu sync.Mutex
		count := map[Action]int{}
		for range 16 {
			group.Go(func() {
				d := &directory{path: dir, now: time.Now}
				var got bool
				var err error
				if want == Opened { // all of them saw none
					got, err = d.open(testReport(), filepath.Join(dir, testDigest))
				} else {
					got, err = create(d.comment(filepath.Join(dir, testDigest)), []byte("x"))
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if got {
					count[want]++
				}
			})
		}
		group.Wait()
		if count[want] != 1 {
			t.Errorf("%d hosts: %s", count[want], want)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v is left, %v", list, err)
	}
}
