package trackertest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// A part of a request or of its answer that is not in the description is reported.
func TestHeld(t *testing.T) {
	const form = `Content-Disposition: form-data; name="file"; filename="report.md"`
	for _, c := range []struct {
		kind, method, url string
		header            map[string]string
		body              string
		status            int
		answer            string
		want              string // "" for nothing
	}{
		{kind: "github", method: "GET", url: "/api/v3/repos/o/r/issues?state=all", status: 200, answer: `[{"number": 1}]`},
		{kind: "github", method: "GET", url: "/api/v3/repos/o/r/issues?state=every", status: 200, answer: `[]`, want: "state=every"},
		{kind: "github", method: "GET", url: "/api/v3/repos/o/r/issues", status: 200, answer: `[{"number": 1}, {"iid": 1}]`, want: "no field iid"},
		{kind: "github", method: "GET", url: "/api/v3/repos/o/r/issues", status: 201, answer: `[]`, want: "status 201"},
		{kind: "github", method: "PUT", url: "/api/v3/repos/o/r/issues", status: 200, want: "there is no PUT"},
		{kind: "gitlab", method: "GET", url: "/api/v4/projects/g%2Fp/issues?per_page=50", status: 200, answer: `[]`, want: "Private-Token"},
		{kind: "gitlab", method: "GET", url: "/api/v4/projects/g%2Fp/issues?per_page=many", header: map[string]string{"Private-Token": "x"}, status: 200, answer: `[]`, want: "per_page=many"},
		{kind: "gitlab", method: "GET", url: "/api/v4/projects/g%2Fp/issues?created_after=yesterday", header: map[string]string{"Private-Token": "x"}, status: 200, answer: `[]`, want: "created_after=yesterday"},
		{kind: "gitlab", method: "GET", url: "/api/v4/projects/g/p/issues", header: map[string]string{"Private-Token": "x"}, status: 200, answer: `[]`, want: "there is no GET"},
		{kind: "gitlab", method: "GET", url: "/api/v4/projects/1/issues/2", header: map[string]string{"Private-Token": "x"}, status: 200, answer: `{"_links": {"self": "x", "duplicate": "y"}}`, want: "_links.duplicate"},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue", body: `{"fields": {"project": {"key": "P"}, "issuetype": {"name": "Bug"}, "summary": "s", "labels": ["l"]}}`, status: 201, answer: `{"key": "P-1"}`},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue", body: `{"fields": {"project": {"key": "P"}, "issuetype": {"name": "Bug"}, "labels": ["l"]}}`, status: 201, want: "lacks the field fields.summary"},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue", body: `{"fields": {"project": {"key": "P"}, "issuetype": {"name": "Bug"}, "summary": "s", "labels": "l"}}`, status: 201, want: "fields.labels"},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue", body: `{"fields": {"project": {"name": "P"}}}`, status: 201, want: "fields.project.name"},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue/P-1/attachments", body: form, status: 200, answer: `[{"id": "1"}]`, want: "X-Atlassian-Token"},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue/P-1/attachments", header: map[string]string{"X-Atlassian-Token": "no-check"}, body: form, status: 200, answer: `[{"id": "1"}]`},
		{kind: "jira", method: "POST", url: "/rest/api/2/issue/P-1/attachments", header: map[string]string{"X-Atlassian-Token": "no-check"}, body: strings.Replace(form, "file", "attachment", 1), status: 200, want: "a file file"},
		{kind: "jira", method: "GET", url: "/rest/api/2/search/jql?startAt=50", status: 200, want: "startAt=50"},
		{kind: "bugzilla", method: "PUT", url: "/rest/bug/1", body: `{"dupe_of": [7]}`, status: 200, want: "dupe_of"},
		{kind: "bugzilla", method: "PUT", url: "/rest/bug/1", body: `{"dupe_of": 7.5}`, status: 200, want: "dupe_of"},
		{kind: "bugzilla", method: "GET", url: "/rest/bug/1/comment", status: 200, answer: `{"bugs": {"1": {"comments": [{"count": 0, "text": "t"}]}}}`},
		{kind: "bugzilla", method: "GET", url: "/rest/bug/1/comment", status: 200, answer: `{"bugs": {"1": {"comments": [{"body": "t"}]}}}`, want: "bugs.1.comments.body"},
		{kind: "bugzilla", method: "GET", url: "/rest/bug/1/comment", header: map[string]string{"Accept": "text/html"}, status: 200, want: "Accept"},
		{kind: "bugzilla", method: "GET", url: "/rest/bug/1?token=x", status: 404, want: "token=x"},
		{kind: "bugzilla", method: "GET", url: "/rest/bug/1", status: 404, answer: `{"anything": 1}`},
	} {
		r := httptest.NewRequest(c.method, c.url, nil)
		if c.kind == "bugzilla" {
			c.header = merged(map[string]string{"Accept": "application/json", "Content-Type": "application/json", "X-Bugzilla-Api-Key": "x"}, c.header)
		}
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		body := map[string]any{"form": c.body}
		if c.body != form && json.Unmarshal([]byte(c.body), &body) == nil {
			delete(body, "form")
		}
		if c.body == "" {
			body = nil
		}
		var answer any
		if c.answer != "" {
			answer = json.RawMessage(c.answer)
		}
		err := published(t, c.kind).held(r, body, c.status, answer)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s %s: %v, want %q", c.method, c.url, c.body, c.answer, err, c.want)
		}
	}
}

func merged(all, own map[string]string) map[string]string {
	for k, v := range own {
		all[k] = v
	}
	return all
}
