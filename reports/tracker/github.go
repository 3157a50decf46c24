package tracker

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// gitHub speaks version 2022-11-28 of GitHub's REST API
// (https://docs.github.com/rest/issues, /rest/search).
type gitHub struct {
	*client
	listed
	owner, repo string
}

func newGitHub(c *client, owner, repo string) api {
	if !c.secret.Empty() {
		c.header.Set("Authorization", "Bearer "+c.secret.text)
	}
	c.header.Set("Accept", "application/vnd.github+json")
	c.header.Set("X-Github-Api-Version", "2022-11-28")
	c.message = messageField
	return &gitHub{client: c, owner: owner, repo: repo}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// gitHubIssue is an issue of GitHub's, Gitea's and Forgejo's.
type gitHubIssue struct {
	Number      int64      `json:"number"`
	HTMLURL     string     `json:"html_url"`
	State       string     `json:"state"`
	StateReason string     `json:"state_reason"`
	Body        string     `json:"body"`
	CreatedAt   time.Time  `json:"created_at"`
	ClosedAt    *time.Time `json:"closed_at"`
	PullRequest *struct{}  `json:"pull_request"`
}

func (i *gitHubIssue) issue() issue {
	is := issue{number: i.Number, name: itoa(i.Number), url: i.HTMLURL, open: i.State != "closed", key: keyOf(i.Body),
		duplicate: i.StateReason == "duplicate", refused: i.StateReason == "not_planned"}
	if i.ClosedAt != nil {
		is.closed = *i.ClosedAt
	}
	return is
}

func (g *gitHub) path(parts ...any) string {
	return route(append([]any{"repos", g.owner, g.repo, "issues"}, parts...)...)
}

// find asks the index, which may be minutes late, and the list of issues, which comes
// from the database.
func (g *gitHub) find(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	query := fmt.Sprintf(`"%s" in:body repo:%s/%s is:issue`, key, g.owner, g.repo)
	var found struct {
		Items []gitHubIssue `json:"items"`
	}
	if _, err := g.do(ctx, get("/search/issues", url.Values{"q": {query}, "per_page": number(pageSize)}), &found); err != nil {
		return nil, err
	}
	set.add(found.Items)
	oldest := g.clock().Add(-fresh)
	for page := 1; page <= mostPages; page++ {
		var list []gitHubIssue
		_, err := g.do(ctx, get(g.path(), url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"desc"}, "per_page": number(pageSize), "page": number(page)}), &list)
		if err != nil {
			return nil, err
		}
		set.add(list)
		if len(list) < pageSize || list[len(list)-1].CreatedAt.Before(oldest) {
			break
		}
	}
	return set.list, nil
}

// issueSet collects those that bear a key, each once.
type issueSet struct {
	key  string
	list []issue
}

func (s *issueSet) add(list []gitHubIssue) {
	for i := range list {
		if list[i].PullRequest == nil {
			s.put(list[i].issue())
		}
	}
}

func (s *issueSet) put(is issue) {
	if is.key != s.key {
		return
	}
	for i := range s.list {
		if s.list[i].name == is.name {
			s.list[i] = is // what came later is from the database
			return
		}
	}
	s.list = append(s.list, is)
}

func (g *gitHub) get(ctx context.Context, name string) (issue, error) {
	var i gitHubIssue
	if _, err := g.do(ctx, get(g.path(name), nil), &i); err != nil {
		return issue{}, err
	}
	return i.issue(), nil
}

func (g *gitHub) create(ctx context.Context, key, title, body string) (issue, error) {
	var i gitHubIssue
	if _, err := g.do(ctx, post(g.path(), map[string]any{"title": title, "body": body}), &i); err != nil {
		return issue{}, err
	}
	is := i.issue()
	is.key = key
	return is, nil
}

// attach has nothing to do: GitHub's API takes no files, and the issue is the report.
func (g *gitHub) attach(context.Context, issue, string, []byte) (bool, error) { return false, nil }

func (g *gitHub) comment(ctx context.Context, is issue, text string) error {
	_, err := g.do(ctx, post(g.path(is.name, "comments"), map[string]any{"body": text}), nil)
	return err
}

func (g *gitHub) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	return forgeCommented(ctx, g.client, g.path(is.name, "comments"), "per_page", since, key)
}

// forgeCommented looks through the comments since a time, of GitHub's and Gitea's.
func forgeCommented(ctx context.Context, c *client, path, size string, since time.Time, key string) (bool, error) {
	for page := 1; page <= mostPages; page++ {
		var list []struct {
			Body      string    `json:"body"`
			CreatedAt time.Time `json:"created_at"`
		}
		query := url.Values{"since": {since.UTC().Format(time.RFC3339)}, size: number(pageSize), "page": number(page)}
		if _, err := c.do(ctx, get(path, query), &list); err != nil {
			return false, err
		}
		for _, one := range list {
			// An old one that was edited since comes too.
			if keyOf(one.Body) == key && !one.CreatedAt.Before(since) {
				return true, nil
			}
		}
		if len(list) < pageSize {
			break
		}
	}
	return false, nil
}

func (g *gitHub) patch(ctx context.Context, is issue, body map[string]any) error {
	_, err := g.do(ctx, request{method: http.MethodPatch, path: g.path(is.name), body: body}, nil)
	return err
}

func (g *gitHub) reopen(ctx context.Context, is issue) error {
	return g.patch(ctx, is, map[string]any{"state": "open", "state_reason": "reopened"})
}

// closeAs comments first, in the words that GitHub makes a mark of.
func (g *gitHub) closeAs(ctx context.Context, is, of issue) error {
	if err := g.comment(ctx, is, "Duplicate of #"+of.name); err != nil && !unsure(err) {
		return err
	}
	err := g.patch(ctx, is, map[string]any{"state": "closed", "state_reason": "duplicate"})
	if kindOf(err) == Refused { // a server of before 2025 has no such reason
		err = g.patch(ctx, is, map[string]any{"state": "closed", "state_reason": "not_planned"})
	}
	return err
}
