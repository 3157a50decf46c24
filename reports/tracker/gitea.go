package tracker

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// gitea speaks version 1 of the API of Gitea and Forgejo
// (https://docs.gitea.com/api, /api/swagger of each server).
type gitea struct{ forge[gitHubIssue] }

func newGitea(c *client, owner, repo string) api {
	if !c.secret.Empty() {
		c.header.Set("Authorization", "token "+c.secret.text)
	}
	c.message = messageField
	return &gitea{forge[gitHubIssue]{client: c, project: route("repos", owner, repo), text: "body", comments: "comments", size: "limit",
		change: http.MethodPatch, smallPages: true, allComments: true}}
}

// findIssues searches the index, which a queue fills, and the list of recent changes, which comes
// from the database.
func (g *gitea) findIssues(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	since := g.clock().Add(-fresh).UTC().Format(time.RFC3339)
	for _, query := range []url.Values{{"q": {key}}, {"since": {since}}} {
		query.Set("state", "all")
		query.Set("type", "issues")
		if err := g.list(ctx, query, func(page []gitHubIssue) bool { set.addIssues(page); return false }); err != nil {
			return nil, err
		}
	}
	return set.list, nil
}

func (g *gitea) attach(ctx context.Context, is issue, name string, text []byte) (bool, error) {
	r, err := upload(g.path(is.name, "assets"), "attachment", name, text)
	if err == nil {
		_, err = g.do(ctx, r, nil)
	}
	return true, err
}

func (g *gitea) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	return g.said(ctx, is, sinceQuery(since), since, key, func([]forgeComment) bool { return true })
}

func (g *gitea) reopen(ctx context.Context, is issue) error {
	return g.update(ctx, is, map[string]any{"state": "open"})
}

// closeAs closes an issue and comments why: the API has no reason for closing.
func (g *gitea) closeAs(ctx context.Context, is, of issue) error {
	if err := g.comment(ctx, is, "Duplicate of #"+of.name); err != nil && !unsure(err) {
		return err
	}
	return g.update(ctx, is, map[string]any{"state": "closed"})
}
