package tracker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bugzilla speaks version 1 of Bugzilla's REST API
// (https://bugzilla.readthedocs.io/en/latest/api/core/v1/).
type bugzilla struct {
	*client
	product, component string
	// fields are additional fields of new bugs. A server may require some of them.
	fields map[string]string
}

func newBugzilla(c *client, product, component string, fields map[string]string) api {
	if !c.secret.Empty() {
		c.header.Set("X-Bugzilla-Api-Key", c.secret.text)
	}
	c.header.Set("Content-Type", "application/json")
	c.message, c.inOK = bugzillaMessage, true
	return &bugzilla{client: c, product: product, component: component, fields: fields}
}

// bugzillaMessage reads {"error": true, "message": "...", "code": 101}, which comes
// with any status.
func bugzillaMessage(body []byte) (string, int) {
	var answer struct {
		Error   any    `json:"error"`
		Message string `json:"message"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", 0
	}
	if yes, _ := answer.Error.(bool); !yes && answer.Error != float64(1) {
		return "", 0
	}
	code, _ := answer.Code.(float64)
	if answer.Message == "" {
		answer.Message = "an error without words"
	}
	return answer.Message, int(code)
}

// badAlias is the error code for an alias that is taken or not allowed.
const badAlias = 103

type bug struct {
	ID         int64  `json:"id"`
	Open       bool   `json:"is_open"`
	Status     string `json:"status"`
	Resolution string `json:"resolution"`
	// Alias is a string, a list of them, or null, depending on the version.
	Alias   any       `json:"alias"`
	Changed time.Time `json:"last_change_time"`
}

const bugFields = "id,is_open,status,resolution,alias,last_change_time"

func (b *bugzilla) issue(g *bug) issue {
	return issue{number: g.ID, name: itoa(g.ID), url: b.base.JoinPath("..", "show_bug.cgi").String() + "?id=" + itoa(g.ID), open: g.Open,
		duplicate: g.Resolution == "DUPLICATE", refused: slices.Contains([]string{"WONTFIX", "INVALID", "WORKSFORME"}, g.Resolution)}
}

// findIssues searches for the alias, and for descriptions and comments with the key. Both come from
// the database. The server keeps aliases unique.
func (b *bugzilla) findIssues(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	within := url.Values{"product": {b.product}, "component": {b.component}, "f1": {"longdesc"}, "o1": {"substring"}, "v1": {key}}
	for _, query := range []url.Values{{"alias": {key}}, within} {
		query.Set("include_fields", bugFields)
		query.Set("limit", "50")
		list, err := b.search(ctx, get("/bug", query))
		if err != nil {
			return nil, err
		}
		for i := range list {
			is, err := b.whole(ctx, &list[i])
			if err != nil {
				return nil, err
			}
			set.put(is)
		}
	}
	return set.list, nil
}

func (b *bugzilla) search(ctx context.Context, r request) ([]bug, error) {
	var found struct {
		Bugs []bug `json:"bugs"`
	}
	_, err := b.do(ctx, r, &found)
	return found.Bugs, err
}

// whole adds to a bug what its fields do not contain: the key of its description, and when it was
// closed.
func (b *bugzilla) whole(ctx context.Context, g *bug) (issue, error) {
	is := b.issue(g)
	comments, err := b.comments(ctx, is, time.Time{})
	if err != nil {
		return is, err
	}
	for _, c := range comments {
		if c.Count == 0 {
			is.key = keyOf(c.Text)
		}
	}
	if is.open {
		return is, nil
	}
	is.closed = g.Changed
	var found struct {
		Bugs []struct {
			History []struct {
				When    time.Time `json:"when"`
				Changes []struct {
					Field string `json:"field_name"`
				} `json:"changes"`
			} `json:"history"`
		} `json:"bugs"`
	}
	if _, err := b.do(ctx, get(route("bug", is.name, "history"), nil), &found); err != nil {
		return is, err
	}
	for _, one := range found.Bugs {
		for _, h := range one.History {
			for _, c := range h.Changes {
				if c.Field == "status" || c.Field == "bug_status" {
					is.closed = h.When // they come in order
				}
			}
		}
	}
	return is, nil
}

type bugComment struct {
	Count   int       `json:"count"`
	Text    string    `json:"text"`
	Created time.Time `json:"creation_time"`
}

func (b *bugzilla) comments(ctx context.Context, is issue, since time.Time) ([]bugComment, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("new_since", since.UTC().Format(time.RFC3339))
	}
	var found struct {
		Bugs map[string]struct {
			Comments []bugComment `json:"comments"`
		} `json:"bugs"`
	}
	_, err := b.do(ctx, get(route("bug", is.name, "comment"), query), &found)
	return found.Bugs[is.name].Comments, err
}

func (b *bugzilla) get(ctx context.Context, name string) (issue, error) {
	list, err := b.search(ctx, get(route("bug", name), url.Values{"include_fields": {bugFields}}))
	if err != nil {
		return issue{}, err
	}
	if len(list) == 0 {
		return issue{}, &Error{Kind: Missing, Tracker: b.name, Err: b.clean("there is no bug " + name)}
	}
	return b.whole(ctx, &list[0])
}

func (b *bugzilla) create(ctx context.Context, key, title, body string) (issue, error) {
	fields := map[string]any{"product": b.product, "component": b.component, "summary": title, "description": body, "alias": key}
	for k, v := range b.fields {
		fields[k] = v
	}
	var made struct {
		ID int64 `json:"id"`
	}
	_, err := b.do(ctx, post("/bug", fields), &made)
	if e := asError(err); e != nil && e.Code == badAlias {
		// Another host was faster, unless this server does not allow aliases.
		list, err := b.findIssues(ctx, key)
		if err != nil {
			return issue{}, err
		}
		if first, ok := winner(list); ok {
			first.foreign = true
			return first, nil
		}
		delete(fields, "alias")
		if _, err := b.do(ctx, post("/bug", fields), &made); err != nil {
			return issue{}, err
		}
	} else if err != nil {
		return issue{}, err
	}
	is := b.issue(&bug{ID: made.ID, Open: true})
	is.key = key
	return is, nil
}

// rivals returns nothing: findIssues sees the database.
func (b *bugzilla) rivals(context.Context, issue) ([]issue, error) { return nil, nil }

func (b *bugzilla) attach(ctx context.Context, is issue, name string, text []byte) (bool, error) {
	_, err := b.do(ctx, post(route("bug", is.name, "attachment"), map[string]any{"ids": []int64{is.number}, "data": base64.StdEncoding.EncodeToString(text),
		"file_name": name, "summary": "The whole report", "content_type": "text/plain"}), nil)
	return true, err
}

func (b *bugzilla) comment(ctx context.Context, is issue, text string) error {
	_, err := b.do(ctx, post(route("bug", is.name, "comment"), map[string]any{"comment": text}), nil)
	return err
}

func (b *bugzilla) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	list, err := b.comments(ctx, is, since)
	for _, c := range list {
		if c.Count > 0 && keyOf(c.Text) == key && !c.Created.Before(since) {
			return true, nil
		}
	}
	return false, err
}

func (b *bugzilla) update(ctx context.Context, is issue, fields map[string]any) error {
	_, err := b.do(ctx, request{method: http.MethodPut, path: route("bug", is.name), body: fields}, nil)
	return err
}

// reopen sets an open status that the server's workflow allows after the current one.
func (b *bugzilla) reopen(ctx context.Context, is issue) error {
	list, err := b.search(ctx, get(route("bug", is.name), url.Values{"include_fields": {"id,status"}}))
	if err != nil || len(list) == 0 {
		return err
	}
	var found struct {
		Fields []struct {
			Values []struct {
				Name string `json:"name"`
				Open bool   `json:"is_open"`
				To   []struct {
					Name string `json:"name"`
				} `json:"can_change_to"`
			} `json:"values"`
		} `json:"fields"`
	}
	if _, err := b.do(ctx, get(route("field", "bug", "bug_status"), nil), &found); err != nil {
		return err
	}
	open, ways := map[string]bool{}, []string{}
	for _, f := range found.Fields {
		for _, v := range f.Values {
			open[v.Name] = v.Open
			for _, to := range v.To {
				if v.Name == list[0].Status {
					ways = append(ways, to.Name)
				}
			}
		}
	}
	ways = slices.DeleteFunc(ways, func(name string) bool { return !open[name] })
	for _, name := range []string{"REOPENED", "CONFIRMED", "NEW", "UNCONFIRMED"} {
		if slices.Contains(ways, name) {
			return b.update(ctx, is, map[string]any{"status": name})
		}
	}
	if len(ways) == 0 {
		return &Error{Kind: Refused, Tracker: b.name, Err: b.clean("there is no way from the status " + strings.ToUpper(list[0].Status) + " to an open one")}
	}
	return b.update(ctx, is, map[string]any{"status": ways[0]})
}

func (b *bugzilla) closeAs(ctx context.Context, is, of issue) error {
	return b.update(ctx, is, map[string]any{"dupe_of": of.number})
}
