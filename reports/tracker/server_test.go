package tracker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// page is a page of a list, newest first.
func page(list []*fakeIssue, q url.Values, size string) []*fakeIssue {
	n, _ := strconv.Atoi(q.Get(size))
	p, _ := strconv.Atoi(q.Get("page"))
	p = max(p, 1)
	var out []*fakeIssue
	for i := len(list) - 1; i >= 0; i-- {
		out = append(out, list[i])
	}
	lo := min((p-1)*n, len(out))
	return out[lo:min(lo+n, len(out))]
}

var missing = map[string]any{"message": "Not Found"}

func (f *fakeTracker) github(r *http.Request, in map[string]any) (int, any) {
	show := func(is *fakeIssue) map[string]any {
		m := map[string]any{"number": is.number, "html_url": fmt.Sprintf("%s/o/r/issues/%d", f.URL, is.number), "state": "open", "state_reason": nil, "body": is.body, "created_at": is.created, "closed_at": nil}
		if !is.open {
			m["state"], m["state_reason"], m["closed_at"] = "closed", is.reason, is.closed
		}
		return m
	}
	all := func(list []*fakeIssue) []any {
		out := []any{}
		for _, is := range list {
			out = append(out, show(is))
		}
		return out
	}
	prefix, size := "/api/v3", "per_page"
	if f.kind == "gitea" {
		prefix, size = "/api/v1", "limit"
	}
	q, path := r.URL.Query(), strings.TrimPrefix(r.URL.Path, prefix)
	if path == "/search/issues" && f.kind == "github" {
		var found []*fakeIssue
		for _, is := range f.issues {
			if word := strings.Split(q.Get("q"), `"`)[1]; !f.lag && strings.Contains(is.body, word) && strings.Contains(q.Get("q"), "repo:o/r") {
				found = append(found, is)
			}
		}
		return 200, map[string]any{"total_count": len(found), "incomplete_results": false, "items": all(found)}
	}
	rest, ok := strings.CutPrefix(path, "/repos/o/r/issues")
	if !ok {
		return 404, missing
	}
	part := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case rest == "" && r.Method == "GET":
		if word := q.Get("q"); word != "" {
			var found []*fakeIssue
			for _, is := range f.issues {
				if !f.lag && strings.Contains(is.body, word) {
					found = append(found, is)
				}
			}
			return 200, all(page(found, q, size))
		}
		return 200, all(page(f.issues, q, size))
	case rest == "" && r.Method == "POST":
		return 201, show(f.add(in["title"].(string), in["body"].(string)))
	}
	is := f.by(part[0])
	switch {
	case is == nil:
		return 404, missing
	case len(part) == 1 && r.Method == "GET":
		return 200, show(is)
	case len(part) == 1 && r.Method == "PATCH":
		reason, _ := in["state_reason"].(string)
		is.set(in["state"] == "open", reason)
		return 200, show(is)
	case part[1] == "comments" && r.Method == "POST":
		is.say(in["body"].(string))
		return 201, map[string]any{"id": 1}
	case part[1] == "comments":
		since, err := time.Parse(time.RFC3339, q.Get("since"))
		if err != nil {
			f.t.Errorf("since: %v", err)
		}
		out := []any{}
		for _, c := range is.comments {
			if n, _ := strconv.Atoi(q.Get("page")); n == 1 && !c.at.Before(since) {
				out = append(out, map[string]any{"body": c.body, "created_at": c.at})
			}
		}
		return 200, out
	case part[1] == "assets" && f.kind == "gitea" && strings.Contains(in["form"].(string), `name="attachment"; filename="report.md"`):
		is.files = append(is.files, in["form"].(string))
		return 201, map[string]any{"id": 1}
	}
	return 404, missing
}

func (f *fakeTracker) gitlab(r *http.Request, in map[string]any) (int, any) {
	show := func(is *fakeIssue) map[string]any {
		m := map[string]any{"id": 1000 + is.number, "iid": is.number, "web_url": fmt.Sprintf("%s/g/sub/p/-/issues/%d", f.URL, is.number), "state": "opened",
			"description": is.body, "closed_at": nil, "moved_to_id": nil, "_links": map[string]any{"closed_as_duplicate_of": nil}}
		if !is.open {
			m["state"], m["closed_at"] = "closed", is.closed
			if is.reason == "duplicate" {
				m["_links"] = map[string]any{"closed_as_duplicate_of": f.URL + "/api/v4/projects/1/issues/1"}
			}
		}
		return m
	}
	q := r.URL.Query()
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4/projects/g%2Fsub%2Fp")
	if !ok {
		return 404, map[string]any{"message": "404 Project Not Found"}
	}
	if rest == "/uploads" && strings.Contains(in["form"].(string), `name="file"; filename="report.md"`) {
		return 201, map[string]any{"id": 5, "alt": "report.md", "url": "/uploads/66dbcd21ec5d24ed6ea225176098d52b/report.md", "markdown": "[report.md](/uploads/66dbcd21ec5d24ed6ea225176098d52b/report.md)"}
	}
	part := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case len(part) == 1 && r.Method == "GET":
		list := f.issues
		if word := q.Get("search"); word != "" {
			list = nil
			for _, is := range f.issues {
				if !f.lag && strings.Contains(is.body, word) && q.Get("in") == "description" {
					list = append(list, is)
				}
			}
		}
		out := []any{}
		for _, is := range page(list, q, "per_page") {
			out = append(out, show(is))
		}
		return 200, out
	case len(part) == 1:
		return 201, show(f.add(in["title"].(string), in["description"].(string)))
	}
	is := f.by(part[1])
	switch {
	case is == nil:
		return 404, map[string]any{"message": "404 Not found"}
	case len(part) == 2 && r.Method == "PUT":
		is.set(in["state_event"] == "reopen", is.reason)
		return 200, show(is)
	case len(part) == 2:
		return 200, show(is)
	case r.Method == "POST":
		text := in["body"].(string)
		if strings.Contains(text, "\n/duplicate #") {
			is.set(false, "duplicate")
		}
		if strings.Contains(text, "](/uploads/") {
			is.files = append(is.files, text)
		}
		is.say(text)
		return 201, map[string]any{"id": 1}
	}
	out := []any{}
	for i := len(is.comments) - 1; i >= 0 && q.Get("sort") == "desc"; i-- {
		out = append(out, map[string]any{"body": is.comments[i].body, "created_at": is.comments[i].at})
	}
	return 200, out
}

const jiraStamp = "2006-01-02T15:04:05.000-0700"

func (f *fakeTracker) jira(r *http.Request, in map[string]any) (int, any) {
	show := func(is *fakeIssue) map[string]any {
		status, fields := "new", map[string]any{"labels": is.labels, "resolution": nil, "resolutiondate": nil, "updated": time.Now().Format(jiraStamp)}
		if !is.open {
			status = "done"
			fields["resolutiondate"] = is.closed.Format(jiraStamp)
			fields["resolution"] = map[string]any{"name": map[string]string{"duplicate": "Duplicate", "not_planned": "Won't Do", "": "Done"}[is.reason]}
		}
		fields["status"] = map[string]any{"statusCategory": map[string]any{"key": status}}
		return map[string]any{"id": fmt.Sprint(10000 + is.number), "key": fmt.Sprintf("PRJ-%d", is.number), "fields": fields}
	}
	q, path := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/rest/api/2")
	none := map[string]any{"errorMessages": []string{"Issue does not exist or you do not have permission to see it."}, "errors": map[string]any{}}
	switch {
	case path == "/search/jql":
		out := []any{}
		for _, is := range f.issues {
			for _, l := range is.labels {
				if !f.lag && q.Get("fields") != "" && strings.Contains(q.Get("jql"), `project = "PRJ" AND labels = "`+l+`"`) {
					out = append(out, show(is))
				}
			}
		}
		return 200, map[string]any{"issues": out, "isLast": true}
	case path == "/issueLink":
		return 201, nil
	case path == "/issue":
		fields := in["fields"].(map[string]any)
		is := f.add(fields["summary"].(string), fields["description"].(string))
		for _, l := range fields["labels"].([]any) {
			is.labels = append(is.labels, l.(string))
		}
		return 201, map[string]any{"id": fmt.Sprint(10000 + is.number), "key": fmt.Sprintf("PRJ-%d", is.number)}
	}
	part := strings.Split(strings.Trim(path, "/"), "/")
	is := f.by(strings.TrimPrefix(part[1], "PRJ-"))
	switch {
	case is == nil:
		return 404, none
	case len(part) == 2:
		return 200, show(is)
	case part[2] == "attachments" && r.Header.Get("X-Atlassian-Token") == "no-check" && strings.Contains(in["form"].(string), `name="file"; filename="report.md"`):
		is.files = append(is.files, in["form"].(string))
		return 200, []any{}
	case part[2] == "comment" && r.Method == "POST":
		is.say(in["body"].(string))
		return 201, map[string]any{"id": "1"}
	case part[2] == "comment":
		out := []any{}
		for i := len(is.comments) - 1; i >= 0; i-- {
			out = append(out, map[string]any{"body": is.comments[i].body, "created": is.comments[i].at.Format(jiraStamp)})
		}
		return 200, map[string]any{"startAt": 0, "maxResults": 50, "total": len(out), "comments": out}
	case part[2] == "transitions" && r.Method == "GET":
		to := func(id, category string) map[string]any {
			return map[string]any{"id": id, "name": id, "to": map[string]any{"statusCategory": map[string]any{"key": category}},
				"fields": map[string]any{"resolution": map[string]any{"allowedValues": []any{map[string]any{"name": "Done"}, map[string]any{"name": "Duplicate"}}}}}
		}
		if is.open {
			return 200, map[string]any{"transitions": []any{to("11", "indeterminate"), to("31", "done")}}
		}
		return 200, map[string]any{"transitions": []any{to("41", "new")}}
	case part[2] == "transitions":
		id := in["transition"].(map[string]any)["id"]
		reason := ""
		if fields, ok := in["fields"].(map[string]any); ok && fields["resolution"].(map[string]any)["name"] == "Duplicate" {
			reason = "duplicate"
		}
		is.set(id == "41", reason)
		return 204, nil
	}
	return 404, none
}

func (f *fakeTracker) bugzilla(r *http.Request, in map[string]any) (int, any) {
	bad := func(status, code int, text string) (int, any) {
		return status, map[string]any{"error": true, "code": code, "message": text}
	}
	show := func(is *fakeIssue) map[string]any {
		m := map[string]any{"id": is.number, "is_open": is.open, "status": "CONFIRMED", "resolution": "", "alias": []string{is.alias}, "last_change_time": time.Now().UTC().Format(time.RFC3339)}
		if !is.open {
			m["status"], m["resolution"] = "RESOLVED", map[string]string{"duplicate": "DUPLICATE", "not_planned": "WONTFIX", "": "FIXED"}[is.reason]
		}
		return m
	}
	q, path := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/rest")
	if r.Header.Get("Content-Type") != "application/json" {
		return bad(400, 32000, "the content type is not JSON")
	}
	switch {
	case path == "/bug" && r.Method == "GET":
		out := []any{}
		for _, is := range f.issues {
			if alias := q.Get("alias"); alias != "" && alias == is.alias ||
				q.Get("f1") == "longdesc" && q.Get("o1") == "substring" && q.Get("product") == "Prod uct" && strings.Contains(is.body, q.Get("v1")) {
				out = append(out, show(is))
			}
		}
		return 200, map[string]any{"bugs": out}
	case path == "/bug":
		if in["version"] == nil || in["product"] != "Prod uct" || in["component"] != "Comp" {
			return bad(400, 50, "a field is missing")
		}
		alias, _ := in["alias"].(string)
		for _, is := range f.issues {
			if alias != "" && is.alias == alias {
				return bad(400, badAlias, "the alias is taken")
			}
		}
		is := f.add(in["summary"].(string), in["description"].(string))
		is.alias = alias
		return 200, map[string]any{"id": is.number}
	case path == "/field/bug/bug_status":
		value := func(name string, open bool, to ...string) map[string]any {
			ways := []any{}
			for _, t := range to {
				ways = append(ways, map[string]any{"name": t, "comment_required": false})
			}
			return map[string]any{"name": name, "is_open": open, "can_change_to": ways}
		}
		return 200, map[string]any{"fields": []any{map[string]any{"name": "bug_status", "values": []any{
			value("UNCONFIRMED", true), value("CONFIRMED", true, "RESOLVED"), value("RESOLVED", false, "VERIFIED", "UNCONFIRMED", "CONFIRMED"), value("VERIFIED", false)}}}}
	}
	part := strings.Split(strings.Trim(path, "/"), "/")
	is := f.by(part[1])
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }
	switch {
	case is == nil:
		return bad(404, 101, "Bug #"+part[1]+" does not exist.")
	case len(part) == 2 && r.Method == "GET":
		return 200, map[string]any{"bugs": []any{show(is)}}
	case len(part) == 2:
		if of, ok := in["dupe_of"]; ok && of != float64(is.number) {
			is.set(false, "duplicate")
		} else {
			is.set(in["status"] == "CONFIRMED", "")
		}
		return 200, map[string]any{"bugs": []any{}}
	case part[2] == "history":
		return 200, map[string]any{"bugs": []any{map[string]any{"id": is.number, "history": []any{
			map[string]any{"when": stamp(is.closed), "changes": []any{map[string]any{"field_name": "status", "added": "RESOLVED", "removed": "CONFIRMED"}}}}}}}
	case part[2] == "attachment":
		text, err := base64.StdEncoding.DecodeString(in["data"].(string))
		if err != nil {
			return bad(400, 606, "no base64")
		}
		is.files = append(is.files, string(text))
		return 201, map[string]any{"ids": []int{1}}
	case part[2] == "comment" && r.Method == "POST":
		is.say(in["comment"].(string))
		return 201, map[string]any{"id": 1}
	case part[2] == "comment":
		out := []any{}
		since, _ := time.Parse(time.RFC3339, q.Get("new_since"))
		for i, c := range append([]fakeComment{{is.body, is.created}}, is.comments...) {
			if c.at.After(since) {
				out = append(out, map[string]any{"count": i, "text": c.body, "creation_time": c.at.UTC().Format(time.RFC3339Nano)})
			}
		}
		return 200, map[string]any{"bugs": map[string]any{part[1]: map[string]any{"comments": out}}, "comments": map[string]any{}}
	}
	return bad(404, 32000, "no such method")
}
