package trackertest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const jiraStamp = "2006-01-02T15:04:05.000-0700"

func (f *Server) jira(r *http.Request, in map[string]any) (int, any) {
	path := strings.TrimPrefix(r.URL.Path, "/rest/api/2")
	switch path {
	case "/search/jql", "/search":
		return f.jiraSearch(path, r.URL.Query())
	case "/issueLink":
		return 201, nil
	case "/issue":
		return f.jiraCreate(in["fields"].(map[string]any))
	}
	part := strings.Split(strings.Trim(path, "/"), "/")
	is := f.by(strings.TrimPrefix(part[1], "PRJ-"))
	switch {
	case is == nil:
		return jiraMissing("Issue does not exist or you do not have permission to see it.")
	case len(part) == 2:
		return 200, is.jira()
	case part[2] == "attachments" && strings.Contains(in["form"].(string), `filename="report.md"`):
		is.Files = append(is.Files, in["form"].(string))
		return 200, []any{map[string]any{"id": "10000", "filename": "report.md"}}
	case part[2] == "comment" && r.Method == "POST":
		is.Say(in["body"].(string))
		return 201, map[string]any{"id": "1"}
	case part[2] == "comment":
		return is.jiraComments(r.URL.Query())
	case part[2] == "transitions" && r.Method == "GET":
		return is.jiraTransitions()
	case part[2] == "transitions":
		return is.jiraMove(in)
	}
	return jiraMissing("no such resource")
}

func jiraMissing(text string) (int, any) {
	return 404, map[string]any{"errorMessages": []string{text}, "errors": map[string]any{}}
}

func (is *Issue) jiraKey() string { return fmt.Sprintf("PRJ-%d", is.Number) }

func (is *Issue) jiraID() string { return fmt.Sprint(10000 + is.Number) }

func (is *Issue) jira() map[string]any {
	status, fields := "new", map[string]any{"labels": is.Labels, "resolution": nil, "resolutiondate": nil, "updated": time.Now().Format(jiraStamp)}
	if !is.Open {
		status = "done"
		fields["resolutiondate"] = is.Closed.Format(jiraStamp)
		fields["resolution"] = map[string]any{"name": map[string]string{"duplicate": "Duplicate", "not_planned": "Won't Do", "": "Done"}[is.Reason]}
	}
	fields["status"] = map[string]any{"statusCategory": map[string]any{"key": status}}
	return map[string]any{"id": is.jiraID(), "key": is.jiraKey(), "fields": fields}
}

// jiraSearch is the search of the cloud, whose pages are smaller than requested ("to manage page
// size, API may return fewer items per page"), or that of a data center, which the cloud has
// removed.
func (f *Server) jiraSearch(path string, q url.Values) (int, any) {
	if f.dataCenter != (path == "/search") {
		if f.dataCenter {
			return jiraMissing("null for uri: " + path)
		}
		return 410, map[string]any{"errorMessages": []string{"The requested API has been removed."}, "errors": map[string]any{}}
	}
	found := []any{}
	for _, is := range f.Issues {
		for _, l := range is.Labels {
			if !f.Lag && q.Get("fields") != "" && strings.Contains(q.Get("jql"), `project = "PRJ" AND labels = "`+l+`"`) {
				found = append(found, is.jira())
			}
		}
	}
	if f.dataCenter {
		return 200, map[string]any{"startAt": 0, "maxResults": 50, "total": len(found), "issues": found}
	}
	at, _ := strconv.Atoi(q.Get("nextPageToken"))
	answer := map[string]any{"issues": found[min(at, len(found)):min(at+1, len(found))], "isLast": at+1 >= len(found)}
	if at+1 < len(found) {
		answer["nextPageToken"] = strconv.Itoa(at + 1)
	}
	return 200, answer
}

func (f *Server) jiraCreate(fields map[string]any) (int, any) {
	is := f.Add(fields["summary"].(string), fields["description"].(string))
	for _, l := range fields["labels"].([]any) {
		is.Labels = append(is.Labels, l.(string))
	}
	return 201, map[string]any{"id": is.jiraID(), "key": is.jiraKey(), "self": "https://example.org/rest/api/2/issue/" + is.jiraID()}
}

func (is *Issue) jiraComments(q url.Values) (int, any) {
	out := []any{}
	for i := len(is.Comments) - 1; i >= 0 && q.Get("orderBy") == "-created"; i-- {
		out = append(out, map[string]any{"body": is.Comments[i].Body, "created": is.Comments[i].At.Format(jiraStamp)})
	}
	return 200, map[string]any{"startAt": 0, "maxResults": 50, "total": len(out), "comments": out}
}

func (is *Issue) jiraTransitions() (int, any) {
	to := func(id, category string) map[string]any {
		return map[string]any{"id": id, "name": id, "to": map[string]any{"statusCategory": map[string]any{"key": category}},
			"fields": map[string]any{"resolution": map[string]any{"allowedValues": []any{map[string]any{"name": "Done"}, map[string]any{"name": "Duplicate"}}}}}
	}
	if is.Open {
		return 200, map[string]any{"transitions": []any{to("11", "indeterminate"), to("31", "done")}}
	}
	return 200, map[string]any{"transitions": []any{to("41", "new")}}
}

func (is *Issue) jiraMove(in map[string]any) (int, any) {
	reason := ""
	if fields, ok := in["fields"].(map[string]any); ok && fields["resolution"].(map[string]any)["name"] == "Duplicate" {
		reason = "duplicate"
	}
	is.Set(in["transition"].(map[string]any)["id"] == "41", reason)
	return 204, nil
}
