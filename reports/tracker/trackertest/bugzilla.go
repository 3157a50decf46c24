package trackertest

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

func (f *Server) bugzilla(r *http.Request, in map[string]any) (int, any) {
	bad := func(status, code int, text string) (int, any) {
		return status, map[string]any{"error": true, "code": code, "message": text}
	}
	show := func(is *Issue) map[string]any {
		m := map[string]any{"id": is.Number, "is_open": is.Open, "status": "CONFIRMED", "resolution": "", "alias": []string{is.alias}, "last_change_time": time.Now().UTC().Format(time.RFC3339)}
		if !is.Open {
			m["status"], m["resolution"] = "RESOLVED", map[string]string{"duplicate": "DUPLICATE", "not_planned": "WONTFIX", "": "FIXED"}[is.Reason]
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
		for _, is := range f.Issues {
			if alias := q.Get("alias"); alias != "" && alias == is.alias ||
				q.Get("f1") == "longdesc" && q.Get("o1") == "substring" && q.Get("product") == "Prod uct" && strings.Contains(is.Body, q.Get("v1")) {
				out = append(out, show(is))
			}
		}
		return 200, map[string]any{"bugs": out}
	case path == "/bug":
		if in["version"] == nil || in["product"] != "Prod uct" || in["component"] != "Comp" {
			return bad(400, 50, "a field is missing")
		}
		alias, _ := in["alias"].(string)
		for _, is := range f.Issues {
			if alias != "" && is.alias == alias {
				return bad(400, 103, "the alias is taken")
			}
		}
		is := f.Add(in["summary"].(string), in["description"].(string))
		is.alias = alias
		return 200, map[string]any{"id": is.Number}
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
		if of, ok := in["dupe_of"]; ok && of != float64(is.Number) {
			is.Set(false, "duplicate")
		} else {
			is.Set(in["status"] == "CONFIRMED", "")
		}
		return 200, map[string]any{"bugs": []any{}}
	case part[2] == "history":
		return 200, map[string]any{"bugs": []any{map[string]any{"id": is.Number, "history": []any{
			map[string]any{"when": stamp(is.Closed), "changes": []any{map[string]any{"field_name": "status", "added": "RESOLVED", "removed": "CONFIRMED"}}}}}}}
	case part[2] == "attachment":
		text, err := base64.StdEncoding.DecodeString(in["data"].(string))
		if err != nil {
			return bad(400, 606, "no base64")
		}
		is.Files = append(is.Files, string(text))
		return 201, map[string]any{"ids": []int{1}}
	case part[2] == "comment" && r.Method == "POST":
		is.Say(in["comment"].(string))
		return 201, map[string]any{"id": 1}
	case part[2] == "comment":
		out := []any{}
		since, _ := time.Parse(time.RFC3339, q.Get("new_since"))
		for i, c := range append([]Comment{{is.Body, is.Created}}, is.Comments...) {
			if c.At.After(since) {
				out = append(out, map[string]any{"count": i, "text": c.Body, "creation_time": c.At.UTC().Format(time.RFC3339Nano)})
			}
		}
		return 200, map[string]any{"bugs": map[string]any{part[1]: map[string]any{"comments": out}}, "comments": map[string]any{}}
	}
	return bad(404, 32000, "no such method")
}
