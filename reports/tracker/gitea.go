package tracker

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"time"
)

// gitea speaks version 1 of the API of Gitea and Forgejo
// (https://docs.gitea.com/api, /api/swagger of each server).
type gitea struct {
	*client
	listed
	owner, repo string
}

func newGitea(c *client, owner, repo string) api {
	if !c.secret.Empty() {
		c.header.Set("Authorization", "token "+c.secret.text)
	}
	c.message = messageField
	return &gitea{client: c, owner: owner, repo: repo}
}

func (g *gitea) path(parts ...any) string {
	return route(append([]any{"repos", g.owner, g.repo, "issues"}, parts...)...)
}

// find asks the index, which a queue fills, and the list of what was changed lately,
// which comes from the database.
func (g *gitea) find(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	since := g.clock().Add(-fresh).UTC().Format(time.RFC3339)
	for _, filter := range []url.Values{{"q": {key}}, {"since": {since}}} {
		for page := 1; page <= mostPages; page++ {
			query := url.Values{"state": {"all"}, "type": {"issues"}, "limit": number(pageSize), "page": number(page)}
			for k, v := range filter {
				query[k] = v
			}
			var list []gitHubIssue
			if _, err := g.do(ctx, get(g.path(), query), &list); err != nil {
				return nil, err
			}
			set.add(list)
			// A server may have smaller pages than were asked for.
			if len(list) == 0 {
				break
			}
		}
	}
	return set.list, nil
}

func (g *gitea) get(ctx context.Context, name string) (issue, error) {
	var i gitHubIssue
	if _, err := g.do(ctx, get(g.path(name), nil), &i); err != nil {
		return issue{}, err
	}
	return i.issue(), nil
}

func (g *gitea) create(ctx context.Context, key, title, body string) (issue, error) {
	var i gitHubIssue
	if _, err := g.do(ctx, post(g.path(), map[string]any{"title": title, "body": body}), &i); err != nil {
		return issue{}, err
	}
	is := i.issue()
	is.key = key
	return is, nil
}

func (g *gitea) attach(ctx context.Context, is issue, name string, text []byte) (bool, error) {
	r, err := upload(g.path(is.name, "assets"), "attachment", name, text)
	if err == nil {
		_, err = g.do(ctx, r, nil)
	}
	return true, err
}

// upload is a form with one file.
func upload(path, field, name string, text []byte) (request, error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", `form-data; name="`+field+`"; filename="`+name+`"`)
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	part, err := form.CreatePart(h)
	if err == nil {
		_, err = part.Write(text)
	}
	if err == nil {
		err = form.Close()
	}
	return request{method: http.MethodPost, path: path, raw: b.Bytes(), kind: form.FormDataContentType()}, err
}

func (g *gitea) comment(ctx context.Context, is issue, text string) error {
	_, err := g.do(ctx, post(g.path(is.name, "comments"), map[string]any{"body": text}), nil)
	return err
}

func (g *gitea) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	return forgeCommented(ctx, g.client, g.path(is.name, "comments"), "limit", since, key)
}

func (g *gitea) state(ctx context.Context, is issue, state string) error {
	_, err := g.do(ctx, request{method: http.MethodPatch, path: g.path(is.name), body: map[string]any{"state": state}}, nil)
	return err
}

func (g *gitea) reopen(ctx context.Context, is issue) error { return g.state(ctx, is, "open") }

// closeAs closes and says why: there is no reason that could be given with it.
func (g *gitea) closeAs(ctx context.Context, is, of issue) error {
	if err := g.comment(ctx, is, "Duplicate of #"+of.name); err != nil && !unsure(err) {
		return err
	}
	return g.state(ctx, is, "closed")
}
