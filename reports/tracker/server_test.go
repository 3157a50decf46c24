package tracker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The servers here speak the shapes that the trackers' API documents have: they are
// what the contract tests (TestContract...) hold the clients to, not the trackers
// themselves.

const testToken = "tok-4f9a+secret/7"

type fakeComment struct {
	body string
	at   time.Time
}

type fakeIssue struct {
	number      int64
	title, body string
	open        bool
	reason      string // duplicate, not_planned
	alias       string
	labels      []string
	created     time.Time
	closed      time.Time
	comments    []fakeComment
	files       []string
}

// fakeTracker keeps issues for a server of any kind.
type fakeTracker struct {
	*httptest.Server
	t    *testing.T
	kind string

	mu     sync.Mutex
	issues []*fakeIssue
	lag    bool // the search finds nothing
	log    []string
	// hook answers a request in the server's place if it returns true; after is called
	// when an answer is ready and can lose it.
	hook  func(w http.ResponseWriter, r *http.Request) bool
	after func(w http.ResponseWriter, r *http.Request) bool
}

var kinds = []string{"github", "gitlab", "gitea", "jira", "bugzilla"}

func newFake(t *testing.T, kind string) *fakeTracker {
	f := &fakeTracker{t: t, kind: kind}
	serve := map[string]func(*http.Request, map[string]any) (int, any){
		"github": f.github, "gitea": f.github, "gitlab": f.gitlab, "jira": f.jira, "bugzilla": f.bugzilla}[kind]
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.log = append(f.log, r.Method+" "+r.URL.Path)
		hook := f.hook
		f.mu.Unlock()
		if hook != nil && hook(w, r) {
			return
		}
		if !f.authorized(r) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message": "Bad credentials", "errorMessages": ["Bad credentials"]}`)
			return
		}
		var in map[string]any
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && len(body) > 0 {
			if err := json.Unmarshal(body, &in); err != nil {
				t.Errorf("%s %s: %v", r.Method, r.URL, err)
			}
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			in = map[string]any{"form": string(body)}
		}
		f.mu.Lock()
		status, answer := serve(r, in)
		f.mu.Unlock()
		if f.after != nil && f.after(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(f.Close)
	return f
}

// answer sets the hook.
func (f *fakeTracker) answer(hook func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *fakeTracker) authorized(r *http.Request) bool {
	switch f.kind {
	case "github":
		return r.Header.Get("Authorization") == "Bearer "+testToken && r.Header.Get("X-GitHub-Api-Version") != ""
	case "gitea":
		return r.Header.Get("Authorization") == "token "+testToken
	case "gitlab":
		return r.Header.Get("PRIVATE-TOKEN") == testToken
	case "jira":
		return r.Header.Get("Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte("me@example.org:"+testToken))
	}
	return r.Header.Get("X-BUGZILLA-API-KEY") == testToken
}

func (f *fakeTracker) spec() string {
	return f.kind + ":" + f.URL + map[string]string{"github": "/o/r", "gitea": "/o/r", "gitlab": "/g/sub/p", "jira": "/PRJ", "bugzilla": "/Prod%20uct/Comp"}[f.kind]
}

// tracker opens it; waits are counted, not done.
func (f *fakeTracker) tracker(dry bool) (*hosted, *[]time.Duration) {
	f.t.Helper()
	tr, err := Open(f.spec(), Options{Token: Secret{testToken}, User: "me@example.org", DryRun: dry})
	if err != nil {
		f.t.Fatal(err)
	}
	h := tr.(*hosted)
	var waits []time.Duration
	h.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	return h, &waits
}

func (f *fakeTracker) add(title, body string) *fakeIssue {
	is := &fakeIssue{number: int64(len(f.issues) + 1), title: title, body: body, open: true, created: time.Now()}
	f.issues = append(f.issues, is)
	return is
}

func (f *fakeTracker) opened() (open []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, is := range f.issues {
		if is.open {
			open = append(open, is.number)
		}
	}
	return open
}

func (f *fakeTracker) by(number string) *fakeIssue {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > int64(len(f.issues)) {
		return nil
	}
	return f.issues[n-1]
}

func (is *fakeIssue) set(open bool, reason string) {
	if is.open != open {
		is.open, is.reason, is.closed = open, reason, time.Now()
	}
}

func (is *fakeIssue) say(text string) {
	is.comments = append(is.comments, fakeComment{text, time.Now()})
}
