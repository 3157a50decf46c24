package tracker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// fresh is how far back issues are looked through one by one, as an index may not have
// them yet.
const fresh = 24 * time.Hour

// mostPages bounds that. Where so many issues are opened in a day, the index has the
// older ones of them.
const mostPages = 10

// pageSize keeps a page of the longest issues well below mostAnswer.
const pageSize = 50

func number(n int) []string { return []string{itoa(int64(n))} }

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query}
}

func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body}
}

// messageField reads the words of an error from {"message": "..."}; GitHub adds what
// is wrong with which field, GitLab has a list or an object in its place.
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

// listed is for trackers of which find sees the database.
type listed struct{}

func (listed) rivals(context.Context, issue) ([]issue, error) { return nil, nil }
