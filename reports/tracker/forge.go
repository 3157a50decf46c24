package tracker

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// fresh is the age up to which issues are read one by one, as an index may not have them yet.
const fresh = 24 * time.Hour

// mostPages bounds that reading. If so many issues are opened in a day, the index has the older
// ones of them.
const mostPages = 10

// pageSize keeps a page of the longest issues well below mostAnswer.
const pageSize = 50

// forge is what GitHub, GitLab and Gitea have in common: issues below a project, and
// comments below issues. W is an issue as the API has it.
type forge[W wireIssue] struct {
	*client
	// project is the route of the project. text is the field of an issue's text, comments the last
	// part of the route to its comments, size the parameter for the size of a page, and change the
	// method that changes an issue.
	project, text, comments, size, change string
	// smallPages: a server's pages may be smaller than requested. allComments: the comments of an
	// issue come on one page.
	smallPages, allComments bool
}

type wireIssue interface{ issue() issue }

func (f *forge[W]) path(parts ...any) string { return f.project + "/issues" + route(parts...) }

func (f *forge[W]) get(ctx context.Context, name string) (issue, error) {
	var w W
	if _, err := f.do(ctx, get(f.path(name), nil), &w); err != nil {
		return issue{}, err
	}
	return w.issue(), nil
}

// list reads the issues of a query, page by page, until they end or take has enough.
func (f *forge[W]) list(ctx context.Context, query url.Values, take func(page []W) (enough bool)) error {
	return pages(ctx, f.client, f.path(), f.size, query, func(page []W) bool {
		// If the server's pages may be smaller than requested, only an empty page is the last.
		return take(page) || len(page) == 0 || len(page) < pageSize && !f.smallPages
	})
}

// pages reads a list until take says that it ends. Without a size of pages it reads one page.
func pages[T any](ctx context.Context, c *client, path, size string, query url.Values, take func(page []T) (last bool)) error {
	for n := 1; n <= mostPages; n++ {
		if size != "" {
			query.Set(size, itoa(pageSize))
			query.Set("page", itoa(int64(n)))
		}
		var page []T
		if _, err := c.do(ctx, get(path, query), &page); err != nil {
			return err
		}
		if take(page) || size == "" {
			break
		}
	}
	return nil
}

func (f *forge[W]) create(ctx context.Context, key, title, body string) (issue, error) {
	var w W
	if _, err := f.do(ctx, post(f.path(), map[string]any{"title": title, f.text: body}), &w); err != nil {
		return issue{}, err
	}
	is := w.issue()
	is.key = key
	return is, nil
}

// update sets fields of an issue.
func (f *forge[W]) update(ctx context.Context, is issue, fields map[string]any) error {
	_, err := f.do(ctx, request{method: f.change, path: f.path(is.name), body: fields}, nil)
	return err
}

func (f *forge[W]) comment(ctx context.Context, is issue, text string) error {
	_, err := f.do(ctx, post(f.path(is.name, f.comments), map[string]any{"body": text}), nil)
	return err
}

// said reports whether one of the comments of a query has a key and was made since a time. last
// says that no later page can have such a comment.
func (f *forge[W]) said(ctx context.Context, is issue, query url.Values, since time.Time, key string, last func(page []forgeComment) bool) (found bool, err error) {
	size := f.size
	if f.allComments {
		size = ""
	}
	err = pages(ctx, f.client, f.path(is.name, f.comments), size, query, func(page []forgeComment) bool {
		for _, c := range page {
			// An older comment that was changed since may be among them.
			found = found || keyOf(c.Body) == key && !c.CreatedAt.Before(since)
		}
		return found || len(page) < pageSize || last(page)
	})
	return found, err
}

type forgeComment struct {
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"created_at"`
}

func sinceQuery(since time.Time) url.Values {
	return url.Values{"since": {since.UTC().Format(time.RFC3339)}}
}

// rivals returns nothing: findIssues sees the database.
func (f *forge[W]) rivals(context.Context, issue) ([]issue, error) { return nil, nil }

// messageField reads the text of an error from {"message": "..."}. GitHub adds the faulty fields.
// GitLab has a list or an object instead of the text.
func messageField(body []byte) (string, int) {
	var answer struct {
		Message any `json:"message"`
		Error   any `json:"error"`
		Errors  any `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", 0
	}
	text := flat(answer.Message)
	if text == "" {
		text, _ = answer.Error.(string)
	}
	if more := flat(answer.Errors); more != "" && text != "" {
		text += ": " + more
	}
	return text, 0
}

func flat(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil || string(text) == "[]" || string(text) == "{}" {
		return ""
	}
	return string(text)
}
