// Package trackertest has servers that behave as the documents of the trackers' APIs describe.
// Clients are tested with them if no real tracker is available.
package trackertest

import (
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

// Token is the token that every server requires, and User the account that it belongs to in Jira.
const (
	Token = "tok-4f9a+secret/7"
	User  = "me@example.org"
)

// Kinds of servers. JiraServer is one more: a server or data center of Jira, whose search and
// tokens differ from the cloud's.
var Kinds = []string{"github", "gitlab", "gitea", "jira", "bugzilla"}

// JiraServer is a kind of server whose Kind is "jira".
const JiraServer = "jira-server"

// Comment is a comment on an issue.
type Comment struct {
	Body string
	At   time.Time
}

// Issue is an issue of a server, as a test reads or makes it.
type Issue struct {
	Number      int64
	Title, Body string
	Open        bool
	Reason      string // duplicate, not_planned
	Labels      []string
	Created     time.Time
	Closed      time.Time
	Comments    []Comment
	Files       []string

	alias string
}

// Server keeps issues and answers as a tracker of its kind. A test may read and set its fields
// while no request is being served.
type Server struct {
	*httptest.Server
	Kind   string
	Issues []*Issue
	// Lag: the search finds nothing, as if its index were late.
	Lag bool
	// Log has the method and path of every request, in their order.
	Log []string
	// After is called when an answer is ready, and loses it if it returns true.
	After func(w http.ResponseWriter, r *http.Request) bool

	t          testing.TB
	mu         sync.Mutex
	hook       func(w http.ResponseWriter, r *http.Request) bool
	api        *description
	dataCenter bool // of Jira
}

// New starts a server until the test ends.
func New(t testing.TB, kind string) *Server {
	f := &Server{t: t, Kind: kind, dataCenter: kind == JiraServer}
	if f.dataCenter {
		f.Kind = "jira"
	}
	f.api = published(t, f.Kind)
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// User is the account that the server's token belongs to, "" if the token itself says that.
func (f *Server) User() string {
	if f.dataCenter {
		return ""
	}
	return User
}

func (f *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.Log = append(f.Log, r.Method+" "+r.URL.Path)
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
	status, answer := f.answer(r, f.read(r, body))
	if f.After != nil && f.After(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

// read parses a body of JSON, or a form as the field of its name.
func (f *Server) read(r *http.Request, body []byte) (in map[string]any) {
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "multipart/"):
		in = map[string]any{"form": string(body)}
	case strings.HasPrefix(kind, "application/json") && len(body) > 0:
		if err := json.Unmarshal(body, &in); err != nil {
			f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	return in
}

// answer carries out a request, and checks it and its answer against the published API.
func (f *Server) answer(r *http.Request, in map[string]any) (status int, answer any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.Kind {
	case "github", "gitea":
		status, answer = f.github(r, in)
	case "gitlab":
		status, answer = f.gitlab(r, in)
	case "jira":
		status, answer = f.jira(r, in)
	default:
		status, answer = f.bugzilla(r, in)
	}
	if err := f.api.held(r, in, status, answer); err != nil {
		f.t.Errorf("against the published API: %v", err)
	}
	return status, answer
}

// Answer sets a function that answers requests instead of the server if it returns true.
func (f *Server) Answer(hook func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *Server) authorized(r *http.Request) bool {
	switch f.Kind {
	case "github":
		return r.Header.Get("Authorization") == "Bearer "+Token && r.Header.Get("X-GitHub-Api-Version") != ""
	case "gitea":
		return r.Header.Get("Authorization") == "token "+Token
	case "gitlab":
		return r.Header.Get("PRIVATE-TOKEN") == Token
	case "jira":
		if f.dataCenter {
			return r.Header.Get("Authorization") == "Bearer "+Token
		}
		return r.Header.Get("Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte(User+":"+Token))
	}
	return r.Header.Get("X-BUGZILLA-API-KEY") == Token
}

// Spec names the server's project as the command takes it.
func (f *Server) Spec() string {
	return f.Kind + ":" + f.URL + map[string]string{"github": "/o/r", "gitea": "/o/r", "gitlab": "/g/sub/p", "jira": "/PRJ", "bugzilla": "/Prod%20uct/Comp"}[f.Kind]
}

// Add makes an issue.
func (f *Server) Add(title, body string) *Issue {
	is := &Issue{Number: int64(len(f.Issues) + 1), Title: title, Body: body, Open: true, Created: time.Now()}
	f.Issues = append(f.Issues, is)
	return is
}

// Opened are the numbers of the issues that are open.
func (f *Server) Opened() (open []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, is := range f.Issues {
		if is.Open {
			open = append(open, is.Number)
		}
	}
	return open
}

// Changes counts the requests that change something.
func (f *Server) Changes() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.Log {
		if !strings.HasPrefix(l, "GET ") {
			n++
		}
	}
	return n
}

func (f *Server) by(number string) *Issue {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > int64(len(f.Issues)) {
		return nil
	}
	return f.Issues[n-1]
}

// Set opens or closes an issue, for a reason.
func (is *Issue) Set(open bool, reason string) {
	if is.Open != open {
		is.Open, is.Reason, is.Closed = open, reason, time.Now()
	}
}

// Say comments.
func (is *Issue) Say(text string) {
	is.Comments = append(is.Comments, Comment{text, time.Now()})
}
