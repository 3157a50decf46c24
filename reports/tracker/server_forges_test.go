package tracker

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

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
