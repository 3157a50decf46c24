package tracker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// jira speaks version 2 of Jira's REST API, in which texts are in the wiki notation:
// of the cloud (https://developer.atlassian.com/cloud/jira/platform/rest/v2) and of
// servers and data centers (https://developer.atlassian.com/server/jira/platform/rest).
type jira struct {
	*client
	project, kind string
	// old: the server has only /search, which the cloud no longer has.
	old bool
}

func newJira(c *client, project, kind, user string) api {
	switch {
	case c.secret.Empty():
	case user != "": // the cloud's tokens belong to an account
		c.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+c.secret.text)))
	default:
		c.header.Set("Authorization", "Bearer "+c.secret.text)
	}
	c.message = jiraMessage
	return &jira{client: c, project: project, kind: kind}
}

// jiraMessage reads {"errorMessages": [...], "errors": {field: text}}.
func jiraMessage(body []byte) (string, int) {
	var answer struct {
		Messages []string          `json:"errorMessages"`
		Errors   map[string]string `json:"errors"`
		Message  string            `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", 0
	}
	text := strings.Join(append(answer.Messages, answer.Message), " ")
	for field, what := range answer.Errors {
		text += " " + field + ": " + what
	}
	return strings.TrimSpace(text), 0
}

// jiraTime is a time as Jira writes it.
type jiraTime struct{ time.Time }

func (t *jiraTime) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil || s == "" {
		return err
	}
	at, err := time.Parse("2006-01-02T15:04:05.999-0700", s)
	if err != nil {
		at, err = time.Parse(time.RFC3339, s)
	}
	t.Time = at
	return err
}

type jiraIssue struct {
	Key    string `json:"key"`
	Fields struct {
		Labels []string `json:"labels"`
		Status struct {
			Category struct {
				Key string `json:"key"`
			} `json:"statusCategory"`
		} `json:"status"`
		Resolution *struct {
			Name string `json:"name"`
		} `json:"resolution"`
		Resolved jiraTime `json:"resolutiondate"`
		Changed  jiraTime `json:"statuscategorychangedate"`
		Updated  jiraTime `json:"updated"`
	} `json:"fields"`
}

// jiraFields are the fields that requests ask for.
const jiraFields = "labels,status,resolution,resolutiondate,statuscategorychangedate,updated"

// jiraRefusals are the resolutions of issues that will not be fixed.
var jiraRefusals = map[string]bool{"won't do": true, "won't fix": true, "declined": true, "cannot reproduce": true}

// issue reads the key from the label, as people edit descriptions.
func (j *jira) issue(i *jiraIssue) issue {
	is := issue{name: i.Key, url: j.base.JoinPath("../../..", "browse", i.Key).String(), open: i.Fields.Status.Category.Key != "done"}
	_, digits, _ := strings.Cut(i.Key, "-")
	is.number, _ = strconv.ParseInt(digits, 10, 64)
	for _, l := range i.Fields.Labels {
		if strings.HasPrefix(l, keyPrefix) && digestForm.MatchString(strings.TrimPrefix(l, keyPrefix)) {
			is.key = l
		}
	}
	if is.open {
		return is
	}
	for _, at := range []jiraTime{i.Fields.Resolved, i.Fields.Changed, i.Fields.Updated} {
		if is.closed.IsZero() {
			is.closed = at.Time
		}
	}
	if r := i.Fields.Resolution; r != nil {
		name := strings.ToLower(r.Name)
		is.duplicate, is.refused = name == "duplicate", jiraRefusals[name]
	}
	return is
}

// neighbours is how many numbers below a new issue are read one by one: as many as may be given out
// while two hosts open their issues.
const neighbours = 10

// findIssues searches the index. In the cloud the index lags, and no list comes from the database.
// So the host that created an issue reads the numbers near it (rivals).
func (j *jira) findIssues(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	jql := fmt.Sprintf(`project = "%s" AND labels = "%s" ORDER BY created ASC`, j.project, key)
	list, err := j.search(ctx, jql)
	if err != nil {
		return nil, err
	}
	for i := range list {
		set.put(j.issue(&list[i]))
	}
	return set.list, nil
}

func (j *jira) search(ctx context.Context, jql string) ([]jiraIssue, error) {
	query := url.Values{"jql": {jql}, "fields": {jiraFields}, "maxResults": number(pageSize)}
	if !j.old {
		list, err := j.enhanced(ctx, query)
		if kindOf(err) != Missing {
			return list, err
		}
		j.old = true
	}
	var found struct {
		Issues []jiraIssue `json:"issues"`
	}
	_, err := j.do(ctx, get("/search", query), &found)
	return found.Issues, err
}

// enhanced is the cloud's search. A page may have fewer issues than requested, even none, although
// there are more.
func (j *jira) enhanced(ctx context.Context, query url.Values) (list []jiraIssue, err error) {
	query = maps.Clone(query)
	for range mostPages {
		var found struct {
			Issues []jiraIssue `json:"issues"`
			Next   string      `json:"nextPageToken"`
		}
		if _, err := j.do(ctx, get("/search/jql", query), &found); err != nil {
			return nil, err
		}
		list = append(list, found.Issues...)
		if found.Next == "" {
			break
		}
		query.Set("nextPageToken", found.Next)
	}
	return list, nil
}

func (j *jira) get(ctx context.Context, name string) (issue, error) {
	var i jiraIssue
	if _, err := j.do(ctx, get(route("issue", name), url.Values{"fields": {jiraFields}}), &i); err != nil {
		return issue{}, err
	}
	return j.issue(&i), nil
}

func (j *jira) create(ctx context.Context, key, title, body string) (issue, error) {
	fields := map[string]any{"project": map[string]any{"key": j.project}, "issuetype": map[string]any{"name": j.kind},
		"summary": title, "description": body, "labels": []string{keyPrefix, key}}
	var made struct {
		Key string `json:"key"`
	}
	if _, err := j.do(ctx, post("/issue", map[string]any{"fields": fields}), &made); err != nil {
		return issue{}, err
	}
	is := j.issue(&jiraIssue{Key: made.Key})
	is.key, is.open = key, true
	return is, nil
}

// rivals returns the issues with the numbers just below one, from the database.
func (j *jira) rivals(ctx context.Context, is issue) ([]issue, error) {
	set := issueSet{key: is.key}
	for n := is.number - 1; n > 0 && n >= is.number-neighbours; n-- {
		other, err := j.get(ctx, j.project+"-"+itoa(n))
		if kindOf(err) == Missing || kindOf(err) == Denied {
			continue // moved, removed, or not visible to this account
		}
		if err != nil {
			return nil, err
		}
		set.put(other)
	}
	return set.list, nil
}

func (j *jira) attach(ctx context.Context, is issue, name string, text []byte) (bool, error) {
	r, err := upload(route("issue", is.name, "attachments"), "file", name, text)
	if err == nil {
		r.header = http.Header{"X-Atlassian-Token": {"no-check"}} // without it the server takes the request for a forged form
		_, err = j.do(ctx, r, nil)
	}
	return true, err
}

func (j *jira) comment(ctx context.Context, is issue, text string) error {
	_, err := j.do(ctx, post(route("issue", is.name, "comment"), map[string]any{"body": text}), nil)
	return err
}

func (j *jira) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	var found struct {
		Comments []struct {
			Body    string   `json:"body"`
			Created jiraTime `json:"created"`
		} `json:"comments"`
	}
	query := url.Values{"orderBy": {"-created"}, "maxResults": number(pageSize)}
	if _, err := j.do(ctx, get(route("issue", is.name, "comment"), query), &found); err != nil {
		return false, err
	}
	for _, c := range found.Comments {
		if keyOf(c.Body) == key && !c.Created.Before(since) {
			return true, nil
		}
	}
	return false, nil
}

type jiraTransition struct {
	ID string `json:"id"`
	To struct {
		Category struct {
			Key string `json:"key"`
		} `json:"statusCategory"`
	} `json:"to"`
	Fields map[string]struct {
		Allowed []struct {
			Name string `json:"name"`
		} `json:"allowedValues"`
	} `json:"fields"`
}

// move moves an issue to a status of one of the categories, by the first transition there is. The
// statuses differ between projects; the categories do not.
func (j *jira) move(ctx context.Context, is issue, resolution string, categories ...string) error {
	var found struct {
		Transitions []jiraTransition `json:"transitions"`
	}
	path := route("issue", is.name, "transitions")
	if _, err := j.do(ctx, get(path, url.Values{"expand": {"transitions.fields"}}), &found); err != nil {
		return err
	}
	for _, category := range categories {
		for _, t := range found.Transitions {
			if t.To.Category.Key != category {
				continue
			}
			body := map[string]any{"transition": map[string]any{"id": t.ID}}
			for _, v := range t.Fields["resolution"].Allowed {
				if v.Name == resolution {
					body["fields"] = map[string]any{"resolution": map[string]any{"name": resolution}}
				}
			}
			_, err := j.do(ctx, post(path, body), nil)
			return err
		}
	}
	return &Error{Kind: Refused, Tracker: j.name, Err: fmt.Errorf("the workflow of %s has no way to a status of the category %s", is.name, strings.Join(categories, " or "))}
}

func (j *jira) reopen(ctx context.Context, is issue) error {
	return j.move(ctx, is, "", "new", "indeterminate")
}

// closeAs comments, closes, and links the two issues if the server has such a link.
func (j *jira) closeAs(ctx context.Context, is, of issue) error {
	if err := j.comment(ctx, is, "Duplicate of "+of.name); err != nil && !unsure(err) {
		return err
	}
	link := map[string]any{"type": map[string]any{"name": "Duplicate"}, "inwardIssue": map[string]any{"key": is.name}, "outwardIssue": map[string]any{"key": of.name}}
	if _, err := j.do(ctx, post("/issueLink", link), nil); err != nil && Final(err) && kindOf(err) != Missing && kindOf(err) != Denied {
		return err
	}
	return j.move(ctx, is, "Duplicate", "done")
}
