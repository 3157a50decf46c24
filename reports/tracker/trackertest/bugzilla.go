package trackertest

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func (f *Server) bugzilla(r *http.Request, in map[string]any) (int, any) {
	path := strings.TrimPrefix(r.URL.Path, "/rest")
	switch {
	case path == "/bug" && r.Method == "GET":
		return f.bugzillaFind(r.URL.Query())
	case path == "/bug":
		return f.bugzillaFile(in)
	case path == "/field/bug/bug_status":
		return 200, bugzillaStatuses()
	}
	part := strings.Split(strings.Trim(path, "/"), "/")
	is := f.by(part[1])
	switch {
	case is == nil:
		return bugzillaError(404, 101, "Bug #"+part[1]+" does not exist.")
	case len(part) == 2 && r.Method == "GET":
		return 200, map[string]any{"bugs": []any{is.bug()}}
	case len(part) == 2:
		return 200, is.changeBug(in)
	case part[2] == "history":
		return 200, map[string]any{"bugs": []any{map[string]any{"id": is.Number, "alias": is.aliases(), "history": []any{
			map[string]any{"when": bugzillaTime(is.Closed), "who": User, "changes": []any{map[string]any{"field_name": "status", "added": "RESOLVED", "removed": "CONFIRMED"}}}}}}}
	case part[2] == "attachment":
		text, err := base64.StdEncoding.DecodeString(in["data"].(string))
		if err != nil {
			return bugzillaError(400, 606, "no base64")
		}
		is.Files = append(is.Files, string(text))
		return 201, map[string]any{"ids": []string{"1"}}
	case part[2] == "comment" && r.Method == "POST":
		is.Say(in["comment"].(string))
		return 201, map[string]any{"id": 1}
	case part[2] == "comment":
		return 200, map[string]any{"bugs": map[string]any{part[1]: map[string]any{"comments": is.bugComments(r.URL.Query().Get("new_since"))}}, "comments": map[string]any{}}
	}
	return bugzillaError(404, 32000, "no such method")
}

func bugzillaError(status, code int, text string) (int, any) {
	return status, map[string]any{"error": true, "code": code, "message": text}
}

func bugzillaTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }

func (is *Issue) aliases() []string {
	if is.alias == "" {
		return []string{}
	}
	return []string{is.alias}
}

func (is *Issue) bug() map[string]any {
	m := map[string]any{"id": is.Number, "is_open": is.Open, "status": "CONFIRMED", "resolution": "", "alias": is.aliases(), "last_change_time": bugzillaTime(time.Now())}
	if !is.Open {
		m["status"], m["resolution"] = "RESOLVED", map[string]string{"duplicate": "DUPLICATE", "not_planned": "WONTFIX", "": "FIXED"}[is.Reason]
	}
	return m
}

func (f *Server) bugzillaFind(q url.Values) (int, any) {
	out := []any{}
	for _, is := range f.Issues {
		if alias := q.Get("alias"); alias != "" && alias == is.alias ||
			q.Get("f1") == "longdesc" && q.Get("o1") == "substring" && q.Get("product") == "Prod uct" && strings.Contains(is.Body, q.Get("v1")) {
			out = append(out, is.bug())
		}
	}
	return 200, map[string]any{"bugs": out}
}

func (f *Server) bugzillaFile(in map[string]any) (int, any) {
	if in["version"] == nil || in["product"] != "Prod uct" || in["component"] != "Comp" {
		return bugzillaError(400, 50, "a field is missing")
	}
	alias, _ := in["alias"].(string)
	for _, is := range f.Issues {
		if alias != "" && is.alias == alias {
			return bugzillaError(400, 103, "the alias is taken")
		}
	}
	is := f.Add(in["summary"].(string), in["description"].(string))
	is.alias = alias
	return 200, map[string]any{"id": is.Number}
}

func (is *Issue) changeBug(in map[string]any) any {
	if of, ok := in["dupe_of"]; ok && of != float64(is.Number) {
		is.Set(false, "duplicate")
	} else {
		is.Set(in["status"] == "CONFIRMED", "")
	}
	return map[string]any{"bugs": []any{map[string]any{"id": is.Number, "alias": is.aliases(), "last_change_time": bugzillaTime(time.Now()), "changes": map[string]any{}}}}
}

// bugComments are the comments since a time. The description is the first.
func (is *Issue) bugComments(newSince string) []any {
	out := []any{}
	since, _ := time.Parse(time.RFC3339, newSince)
	for i, c := range append([]Comment{{is.Body, is.Created}}, is.Comments...) {
		if c.At.After(since) {
			out = append(out, map[string]any{"count": i, "text": c.Body, "creation_time": c.At.UTC().Format(time.RFC3339Nano)})
		}
	}
	return out
}

// bugzillaStatuses are a workflow.
func bugzillaStatuses() any {
	value := func(name string, open bool, to ...string) map[string]any {
		ways := []any{}
		for _, t := range to {
			ways = append(ways, map[string]any{"name": t, "comment_required": false})
		}
		return map[string]any{"name": name, "is_open": open, "can_change_to": ways}
	}
	return map[string]any{"fields": []any{map[string]any{"name": "bug_status", "values": []any{
		value("UNCONFIRMED", true), value("CONFIRMED", true, "RESOLVED"), value("RESOLVED", false, "VERIFIED", "UNCONFIRMED", "CONFIRMED"), value("VERIFIED", false)}}}}
}
