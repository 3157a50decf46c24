package trackertest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// page is a page of a list, newest first.
func page(list []*Issue, q url.Values, size string) []*Issue {
	n, _ := strconv.Atoi(q.Get(size))
	p, _ := strconv.Atoi(q.Get("page"))
	p = max(p, 1)
	var out []*Issue
	for i := len(list) - 1; i >= 0; i-- {
		out = append(out, list[i])
	}
	lo := min((p-1)*n, len(out))
	return out[lo:min(lo+n, len(out))]
}

var missing = map[string]any{"message": "Not Found"}

// github serves Gitea as well, whose API is similar.
func (f *Server) github(r *http.Request, in map[string]any) (int, any) {
	q := r.URL.Query()
	path := strings.TrimPrefix(r.URL.Path, map[string]string{"github": "/api/v3", "gitea": "/api/v1"}[f.Kind])
	if path == "/search/issues" && f.Kind == "github" {
		return f.githubSearch(q.Get("q"))
	}
	rest, ok := strings.CutPrefix(path, "/repos/o/r/issues")
	if !ok {
		return 404, missing
	}
	part := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case rest == "" && r.Method == "GET":
		return f.githubList(q)
	case rest == "" && r.Method == "POST":
		return 201, f.githubIssue(f.Add(in["title"].(string), in["body"].(string)))
	}
	is := f.by(part[0])
	switch {
	case is == nil:
		return 404, missing
	case len(part) == 1 && r.Method == "GET":
		return 200, f.githubIssue(is)
	case len(part) == 1 && r.Method == "PATCH":
		return f.githubChange(is, in)
	case part[1] == "comments" && r.Method == "POST":
		is.Say(in["body"].(string))
		return 201, map[string]any{"id": 1}
	case part[1] == "comments":
		return f.githubComments(is, q)
	case part[1] == "assets" && f.Kind == "gitea" && strings.Contains(in["form"].(string), `filename="report.md"`):
		is.Files = append(is.Files, in["form"].(string))
		return 201, map[string]any{"id": 1}
	}
	return 404, missing
}

func (f *Server) githubIssue(is *Issue) map[string]any {
	m := map[string]any{"number": is.Number, "html_url": fmt.Sprintf("%s/o/r/issues/%d", f.URL, is.Number), "state": "open", "body": is.Body, "created_at": is.Created, "closed_at": nil}
	if !is.Open {
		m["state"], m["closed_at"] = "closed", is.Closed
	}
	if f.Kind == "github" {
		m["state_reason"] = nil
		if !is.Open && is.Reason != "" {
			m["state_reason"] = is.Reason
		}
	}
	return m
}

func (f *Server) githubIssues(list []*Issue) []any {
	out := []any{}
	for _, is := range list {
		out = append(out, f.githubIssue(is))
	}
	return out
}

// indexed returns the issues that a search for a word finds.
func (f *Server) indexed(word string) (found []*Issue) {
	for _, is := range f.Issues {
		if !f.Lag && strings.Contains(is.Body, word) {
			found = append(found, is)
		}
	}
	return found
}

func (f *Server) githubSearch(query string) (int, any) {
	var found []*Issue
	if word := strings.Split(query, `"`); len(word) == 3 && strings.Contains(query, "repo:o/r") {
		found = f.indexed(word[1])
	}
	return 200, map[string]any{"total_count": len(found), "incomplete_results": false, "items": f.githubIssues(found)}
}

func (f *Server) githubList(q url.Values) (int, any) {
	list := f.Issues
	if word := q.Get("q"); word != "" {
		list = f.indexed(word)
	}
	size := map[string]string{"github": "per_page", "gitea": "limit"}[f.Kind]
	return 200, f.githubIssues(page(list, q, size))
}

func (f *Server) githubChange(is *Issue, in map[string]any) (int, any) {
	reason, _ := in["state_reason"].(string)
	is.Set(in["state"] == "open", reason)
	if f.Kind == "gitea" {
		return 201, f.githubIssue(is)
	}
	return 200, f.githubIssue(is)
}

func (f *Server) githubComments(is *Issue, q url.Values) (int, any) {
	since, err := time.Parse(time.RFC3339, q.Get("since"))
	if err != nil {
		f.t.Errorf("since: %v", err)
	}
	out := []any{}
	for _, c := range is.Comments {
		if n, _ := strconv.Atoi(q.Get("page")); (n == 1 || f.Kind == "gitea") && !c.At.Before(since) {
			out = append(out, map[string]any{"body": c.Body, "created_at": c.At})
		}
	}
	return 200, out
}

func (f *Server) gitlab(r *http.Request, in map[string]any) (int, any) {
	q := r.URL.Query()
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4/projects/g%2Fsub%2Fp")
	if !ok {
		return 404, map[string]any{"message": "404 Project Not Found"}
	}
	if rest == "/uploads" && strings.Contains(in["form"].(string), `filename="report.md"`) {
		const at = "/uploads/66dbcd21ec5d24ed6ea225176098d52b/report.md"
		return 201, map[string]any{"id": 5, "alt": "report.md", "url": at, "full_path": "/-/project/1" + at, "markdown": "[report.md](" + at + ")"}
	}
	part := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case len(part) == 1 && r.Method == "GET":
		return f.gitlabList(q)
	case len(part) == 1:
		return 201, f.gitlabIssue(f.Add(in["title"].(string), in["description"].(string)))
	}
	is := f.by(part[1])
	switch {
	case is == nil:
		return 404, map[string]any{"message": "404 Not found"}
	case len(part) == 2 && r.Method == "PUT":
		is.Set(in["state_event"] == "reopen", is.Reason)
		return 200, f.gitlabIssue(is)
	case len(part) == 2:
		return 200, f.gitlabIssue(is)
	case r.Method == "POST":
		return 201, is.gitlabNote(in["body"].(string))
	}
	out := []any{}
	for i := len(is.Comments) - 1; i >= 0 && q.Get("sort") == "desc"; i-- {
		out = append(out, map[string]any{"body": is.Comments[i].Body, "created_at": is.Comments[i].At})
	}
	return 200, out
}

func (f *Server) gitlabIssue(is *Issue) map[string]any {
	m := map[string]any{"id": 1000 + is.Number, "iid": is.Number, "web_url": fmt.Sprintf("%s/g/sub/p/-/issues/%d", f.URL, is.Number), "state": "opened",
		"description": is.Body, "closed_at": nil, "moved_to_id": nil, "_links": map[string]any{"closed_as_duplicate_of": nil}}
	if !is.Open {
		m["state"], m["closed_at"] = "closed", is.Closed
		if is.Reason == "duplicate" {
			m["_links"] = map[string]any{"closed_as_duplicate_of": f.URL + "/api/v4/projects/1/issues/1"}
		}
	}
	return m
}

func (f *Server) gitlabList(q url.Values) (int, any) {
	list := f.Issues
	if word := q.Get("search"); word != "" {
		list = f.indexed(word)
	}
	out := []any{}
	for _, is := range page(list, q, "per_page") {
		out = append(out, f.gitlabIssue(is))
	}
	return 200, out
}

func (is *Issue) gitlabNote(text string) any {
	if strings.Contains(text, "\n/duplicate #") {
		is.Set(false, "duplicate")
	}
	if strings.Contains(text, "](/uploads/") {
		is.Files = append(is.Files, text)
	}
	is.Say(text)
	return map[string]any{"id": 1}
}
