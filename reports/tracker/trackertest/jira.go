package trackertest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const jiraStamp = "2006-01-02T15:04:05.000-0700"

func (f *Server) jira(r *http.Request, in map[string]any) (int, any) {
	show := func(is *Issue) map[string]any {
		status, fields := "new", map[string]any{"labels": is.Labels, "resolution": nil, "resolutiondate": nil, "updated": time.Now().Format(jiraStamp)}
		if !is.Open {
			status = "done"
			fields["resolutiondate"] = is.Closed.Format(jiraStamp)
			fields["resolution"] = map[string]any{"name": map[string]string{"duplicate": "Duplicate", "not_planned": "Won't Do", "": "Done"}[is.Reason]}
		}
		fields["status"] = map[string]any{"statusCategory": map[string]any{"key": status}}
		return map[string]any{"id": fmt.Sprint(10000 + is.Number), "key": fmt.Sprintf("PRJ-%d", is.Number), "fields": fields}
	}
	q, path := r.URL.Query(), strings.TrimPrefix(r.URL.Path, "/rest/api/2")
	none := map[string]any{"errorMessages": []string{"Issue does not exist or you do not have permission to see it."}, "errors": map[string]any{}}
	switch {
	case path == "/search/jql":
		out := []any{}
		for _, is := range f.Issues {
			for _, l := range is.Labels {
				if !f.Lag && q.Get("fields") != "" && strings.Contains(q.Get("jql"), `project = "PRJ" AND labels = "`+l+`"`) {
					out = append(out, show(is))
				}
			}
		}
		return 200, map[string]any{"issues": out, "isLast": true}
	case path == "/issueLink":
		return 201, nil
	case path == "/issue":
		fields := in["fields"].(map[string]any)
		is := f.Add(fields["summary"].(string), fields["description"].(string))
		for _, l := range fields["labels"].([]any) {
			is.Labels = append(is.Labels, l.(string))
		}
		return 201, map[string]any{"id": fmt.Sprint(10000 + is.Number), "key": fmt.Sprintf("PRJ-%d", is.Number)}
	}
	part := strings.Split(strings.Trim(path, "/"), "/")
	is := f.by(strings.TrimPrefix(part[1], "PRJ-"))
	switch {
	case is == nil:
		return 404, none
	case len(part) == 2:
		return 200, show(is)
	case part[2] == "attachments" && r.Header.Get("X-Atlassian-Token") == "no-check" && strings.Contains(in["form"].(string), `name="file"; filename="report.md"`):
		is.Files = append(is.Files, in["form"].(string))
		return 200, []any{}
	case part[2] == "comment" && r.Method == "POST":
		is.Say(in["body"].(string))
		return 201, map[string]any{"id": "1"}
	case part[2] == "comment":
		out := []any{}
		for i := len(is.Comments) - 1; i >= 0; i-- {
			out = append(out, map[string]any{"body": is.Comments[i].Body, "created": is.Comments[i].At.Format(jiraStamp)})
		}
		return 200, map[string]any{"startAt": 0, "maxResults": 50, "total": len(out), "comments": out}
	case part[2] == "transitions" && r.Method == "GET":
		to := func(id, category string) map[string]any {
			return map[string]any{"id": id, "name": id, "to": map[string]any{"statusCategory": map[string]any{"key": category}},
				"fields": map[string]any{"resolution": map[string]any{"allowedValues": []any{map[string]any{"name": "Done"}, map[string]any{"name": "Duplicate"}}}}}
		}
		if is.Open {
			return 200, map[string]any{"transitions": []any{to("11", "indeterminate"), to("31", "done")}}
		}
		return 200, map[string]any{"transitions": []any{to("41", "new")}}
	case part[2] == "transitions":
		id := in["transition"].(map[string]any)["id"]
		reason := ""
		if fields, ok := in["fields"].(map[string]any); ok && fields["resolution"].(map[string]any)["name"] == "Duplicate" {
			reason = "duplicate"
		}
		is.Set(id == "41", reason)
		return 204, nil
	}
	return 404, none
}
