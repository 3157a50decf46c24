package tracker

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// gitLab speaks version 4 of GitLab's REST API (https://docs.gitlab.com/api/issues,
// /api/notes, /api/project_markdown_uploads).
type gitLab struct{ forge[gitLabIssue] }

func newGitLab(c *client, project string) api {
	if !c.secret.Empty() {
		c.header.Set("Private-Token", c.secret.text)
	}
	c.message = messageField
	return &gitLab{forge[gitLabIssue]{client: c, project: route("projects", project), text: "description", comments: "notes", size: "per_page",
		change: http.MethodPut}}
}

type gitLabIssue struct {
	IID         int64      `json:"iid"`
	WebURL      string     `json:"web_url"`
	State       string     `json:"state"`
	Description string     `json:"description"`
	ClosedAt    *time.Time `json:"closed_at"`
	MovedTo     int64      `json:"moved_to_id"`
	Links       struct {
		ClosedAs string `json:"closed_as_duplicate_of"`
	} `json:"_links"`
}

func (i gitLabIssue) issue() issue {
	is := issue{number: i.IID, name: itoa(i.IID), url: i.WebURL, open: i.State != "closed", key: keyOf(i.Description),
		duplicate: i.State == "closed" && (i.Links.ClosedAs != "" || i.MovedTo != 0)}
	if i.ClosedAt != nil {
		is.closed = *i.ClosedAt
	}
	return is
}

// findIssues searches for the key, and lists recent issues: the index of the search may lag.
func (g *gitLab) findIssues(ctx context.Context, key string) ([]issue, error) {
	set := issueSet{key: key}
	since := g.clock().Add(-fresh).UTC().Format(time.RFC3339)
	for _, query := range []url.Values{{"search": {key}}, {"created_after": {since}}} {
		query.Set("scope", "all")
		query.Set("state", "all")
		err := g.list(ctx, query, func(page []gitLabIssue) bool {
			for _, i := range page {
				set.put(i.issue())
			}
			return false
		})
		if err != nil {
			return nil, err
		}
	}
	return set.list, nil
}

func (g *gitLab) create(ctx context.Context, key, title, body string) (issue, error) {
	return g.forge.create(ctx, key, title, commandless(body))
}

// slashed matches lines that GitLab would take for commands (/close, /assign), if a text of the
// failing program begins one.
var slashed = regexp.MustCompile(`(?m)^([ \t>]*)/`)

// commandless returns a text without commands. In a block of code an entity would be shown as it
// is, so the slash is moved from the beginning of its line by a character.
func commandless(text string) string {
	lines := strings.SplitAfter(text, "\n")
	fence := ""
	for i, l := range lines {
		mark := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
		case fence != "" && strings.TrimRight(l, "\n") == fence:
			fence = ""
		case fence != "":
			lines[i] = slashed.ReplaceAllString(l, "$1| /")
		default:
			lines[i] = slashed.ReplaceAllString(l, "$1&#47;")
		}
	}
	return strings.Join(lines, "")
}

var uploaded = regexp.MustCompile(`^/uploads/[0-9a-f]+/[A-Za-z0-9_.-]+$`)

// attach uploads a file to the project and links it in a comment.
func (g *gitLab) attach(ctx context.Context, is issue, name string, text []byte) (bool, error) {
	r, err := upload(g.project+"/uploads", "file", name, text)
	if err != nil {
		return true, err
	}
	var file struct {
		URL string `json:"url"`
	}
	if _, err := g.do(ctx, r, &file); err != nil {
		return true, err
	}
	if !uploaded.MatchString(file.URL) {
		return true, &Error{Kind: Refused, Tracker: g.name, Err: g.clean("it gives a file the address " + file.URL)}
	}
	return true, g.comment(ctx, is, "The whole report: ["+name+"]("+file.URL+")")
}

func (g *gitLab) commented(ctx context.Context, is issue, since time.Time, key string) (bool, error) {
	newest := url.Values{"sort": {"desc"}, "order_by": {"created_at"}}
	return g.said(ctx, is, newest, since, key, func(page []forgeComment) bool { return page[len(page)-1].CreatedAt.Before(since) })
}

func (g *gitLab) event(ctx context.Context, is issue, event string) error {
	return g.update(ctx, is, map[string]any{"state_event": event})
}

func (g *gitLab) reopen(ctx context.Context, is issue) error { return g.event(ctx, is, "reopen") }

// closeAs gives the command that links the two and closes one, and closes it for those
// who may not give it.
func (g *gitLab) closeAs(ctx context.Context, is, of issue) error {
	if err := g.comment(ctx, is, "The same cause as #"+of.name+".\n\n/duplicate #"+of.name); err != nil && !unsure(err) {
		return err
	}
	return g.event(ctx, is, "close")
}
