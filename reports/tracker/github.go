package tracker

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// gitHub speaks version 2022-11-28 of GitHub's REST API
// (https://docs.github.com/rest/issues, /rest/search).
type gitHub struct {
	forge[gitHubIssue]
	owner, repo string
}

func newGitHub(c *client, owner, repo string) api {
	if !c.secret.Empty() {
		c.header.Set("Authorization", "Bearer "+c.secret.text)
	}
	c.header.Set("Accept", "application/vnd.github+json")
	c.header.Set("X-Github-Api-Version", "2022-11-28")
	c.message = messageField
	return &gitHub{owner: owner, repo: repo, forge: forge[gitHubIssue]{client: c, project: route("repos", owner, repo), text: "body", comments: "comments",
		size: "per_page", change: http.MethodPatch}}
}

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

func (i gitHubIssue) issue() issue {
	is := issue{number: i.Number, name: itoa(i.Number), url: i.HTMLURL, open: i.State != "closed", key: keyOf(i.Body),
		duplicate: i.StateReason == "duplicate", refused: i.StateReason == "not_planned"}
	if i.ClosedAt != nil {
		is.closed = *i.ClosedAt
	}
	return is
}

// addIssues leaves out pull requests.
func (s *issueSet) addIssues(list []gitHubIssue) {
	for i := range list {
		if list[i].PullRequest == nil {
			s.put(list[i].issue())
		}
	}
}

// findIssues searches the index, which may be minutes late, and the list of issues, which comes
// from the database.
func (g *gitHub) findIssues(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	query := fmt.Sprintf(`"%s" in:body repo:%s/%s is:issue`, key, g.owner, g.repo)
	var found struct {
		Items []gitHubIssue `json:"items"`
	}
	if _, err := g.do(ctx, get("/search/issues", url.Values{"q": {query}, "per_page": number(pageSize)}), &found); err != nil {
		return nil, err
	}
	set.addIssues(found.Items)
	oldest := g.clock().Add(-fresh)
	err := g.list(ctx, url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"desc"}}, func(page []gitHubIssue) bool {
		set.addIssues(page)
		return len(page) > 0 && page[len(page)-1].CreatedAt.Before(oldest)
	})
	return set.list, err
}

// attach has nothing to do: GitHub's API takes no files, and the issue is the report.
func (g *gitHub) attach(context.Context, issue, string, []byte) (bool, error) { return false, nil }

func (g *gitHub) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	// They come in the order in which they were made, the changed ones among them.
	return g.said(ctx, is, sinceQuery(since), since, key, func([]forgeComment) bool { return false })
}

func (g *gitHub) reopen(ctx context.Context, is issue) error {
	return g.update(ctx, is, map[string]any{"state": "open", "state_reason": "reopened"})
}

// closeAs comments first, in the words that GitHub makes a mark of.
func (g *gitHub) closeAs(ctx context.Context, is, of issue) error {
	if err := g.comment(ctx, is, "Duplicate of #"+of.name); err != nil && !unsure(err) {
		return err
	}
	err := g.update(ctx, is, map[string]any{"state": "closed", "state_reason": "duplicate"})
	if kindOf(err) == Refused { // a server of before 2025 has no such reason
		err = g.update(ctx, is, map[string]any{"state": "closed", "state_reason": "not_planned"})
	}
	return err
}
