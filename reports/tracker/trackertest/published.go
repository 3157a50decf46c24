package trackertest

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// published are the parts of the trackers' own descriptions of their APIs that are used
// here: of each operation the parameters in the address, the fields of the body, each
// with the values that it may have or null, and the fields of the answers. Their sources
// are named in them.
//
//go:embed published
var publishedFiles embed.FS

type operation struct {
	Method   string              `json:"method"`
	Path     string              `json:"path"`
	Query    map[string][]string `json:"query"`
	Body     map[string][]string `json:"body"`
	Required []string            `json:"required"`
	// Answers have the fields of an answer, or of each in a list, by its status.
	Answers map[string][]string `json:"answers"`
}

// published returns a kind's operations, none where there is no description.
func published(t testing.TB, kind string) []operation {
	t.Helper()
	text, err := publishedFiles.ReadFile("published/" + kind + ".json")
	if err != nil {
		return nil
	}
	var d struct {
		Operations []operation `json:"operations"`
	}
	if err := json.Unmarshal(text, &d); err != nil || len(d.Operations) == 0 {
		t.Fatalf("%s: %d operations, %v", kind, len(d.Operations), err)
	}
	return d.Operations
}

// held holds a request and its answer to the API.
func held(list []operation, r *http.Request, body map[string]any, status int, answer any) error {
	o := find(list, r.Method, r.URL.Path)
	if o == nil {
		return fmt.Errorf("there is no %s %s", r.Method, r.URL.Path)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		body = nil // a form is no JSON
	}
	if err := o.asked(r.URL.Query(), body); err != nil || status >= 300 {
		return err
	}
	return o.answered(status, answer)
}

// find is the operation of a request, nil if the API has none.
func find(list []operation, method, path string) *operation {
	for i := range list {
		want, got := strings.Split(list[i].Path, "/"), strings.Split(path, "/")
		same := list[i].Method == method && len(want) == len(got)
		for k := range want {
			same = same && (want[k] == got[k] || strings.HasPrefix(want[k], "{") && got[k] != "")
		}
		if same {
			return &list[i]
		}
	}
	return nil
}

// asked says what of a request the API does not have.
func (o *operation) asked(query url.Values, body map[string]any) error {
	for name := range query {
		values, known := o.Query[name]
		if !known || values != nil && !slices.Contains(values, query.Get(name)) {
			return fmt.Errorf("%s %s takes no %s=%s", o.Method, o.Path, name, query.Get(name))
		}
	}
	for name, value := range body {
		values, known := o.Body[name]
		text, _ := value.(string)
		if !known || values != nil && !slices.Contains(values, text) {
			return fmt.Errorf("%s %s takes no field %s with %v", o.Method, o.Path, name, value)
		}
	}
	for _, name := range o.Required {
		if body[name] == nil {
			return fmt.Errorf("%s %s lacks the field %s", o.Method, o.Path, name)
		}
	}
	return nil
}

// answered says what of an answer the API would not give.
func (o *operation) answered(status int, answer any) error {
	fields, known := o.Answers[fmt.Sprint(status)]
	if !known {
		return fmt.Errorf("%s %s does not answer with status %d", o.Method, o.Path, status)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var list []map[string]any
	if json.Unmarshal(text, &list) != nil {
		list = make([]map[string]any, 1)
		if err := json.Unmarshal(text, &list[0]); err != nil {
			return err
		}
	}
	for _, one := range list {
		for name := range one {
			if !slices.Contains(fields, name) {
				return fmt.Errorf("%s %s has no field %s in its answer", o.Method, o.Path, name)
			}
		}
	}
	return nil
}
