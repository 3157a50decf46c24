package tracker

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

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
