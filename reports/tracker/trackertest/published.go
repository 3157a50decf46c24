package trackertest

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// published are the parts of the trackers' own descriptions of their APIs that are used
// here. Their sources are named in them.
//
//go:embed published
var publishedFiles embed.FS

// description describes one tracker's API.
type description struct {
	// Headers are the headers that every request must have, with the allowed values or null for
	// any.
	Headers    values      `json:"headers"`
	Operations []operation `json:"operations"`
}

// values are the allowed values by name. null allows any, and a word in angle brackets is a type
// (see fits).
type values map[string][]string

// operation is an operation of an API. The name of a field within another has the outer name as a
// prefix, with a dot: "fields.summary". A list is described by its elements, and a star is any
// name. The content of a field is checked only if a name with a dot is listed.
type operation struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Headers are required in addition to those of all operations.
	Headers values `json:"headers"`
	Query   values `json:"query"`
	// Form is the name of the file in a form, and Body the fields of a body in JSON.
	Form     string   `json:"form"`
	Body     values   `json:"body"`
	Required []string `json:"required"`
	// Answers have the fields of an answer by its status.
	Answers map[string][]string `json:"answers"`
}

func published(t testing.TB, kind string) *description {
	t.Helper()
	text, err := publishedFiles.ReadFile("published/" + kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	d := &description{}
	if err := json.Unmarshal(text, d); err != nil || len(d.Operations) == 0 {
		t.Fatalf("%s: %d operations, %v", kind, len(d.Operations), err)
	}
	return d
}

// held checks a request and its answer against the API.
func (d *description) held(r *http.Request, body map[string]any, status int, answer any) error {
	o := d.operationAt(r.Method, r.URL.EscapedPath())
	if o == nil {
		return fmt.Errorf("there is no %s %s", r.Method, r.URL.EscapedPath())
	}
	err := o.asked(r, d.Headers, body)
	if err == nil && status < 300 {
		err = o.answered(status, answer)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.Method, o.Path, err)
	}
	return nil
}

// operationAt returns the operation of a request, nil if the API has none.
func (d *description) operationAt(method, path string) *operation {
	for i := range d.Operations {
		o := &d.Operations[i]
		want, got := strings.Split(o.Path, "/"), strings.Split(path, "/")
		same := o.Method == method && len(want) == len(got)
		for k := range want {
			same = same && (want[k] == got[k] || strings.HasPrefix(want[k], "{") && got[k] != "")
		}
		if same {
			return o
		}
	}
	return nil
}

// asked reports the parts of a request that the API does not have.
func (o *operation) asked(r *http.Request, headers values, body map[string]any) error {
	for _, list := range []values{headers, o.Headers} {
		for name, values := range list {
			if v := r.Header.Get(name); v == "" || !fits(values, v) {
				return fmt.Errorf("it wants the header %s, which is %q", name, v)
			}
		}
	}
	for name, list := range r.URL.Query() {
		for _, v := range list {
			if values, known := o.Query[name]; !known || !fits(values, v) {
				return fmt.Errorf("it takes no %s=%s", name, v)
			}
		}
	}
	if o.Form != "" {
		if form, _ := body["form"].(string); !strings.Contains(form, `name="`+o.Form+`"; filename=`) {
			return fmt.Errorf("it wants a form with a file %s", o.Form)
		}
		return nil
	}
	return o.told(body)
}

// told reports the parts of a body that the API does not have.
func (o *operation) told(body map[string]any) error {
	seen := map[string]bool{}
	err := walk(body, "", o.Body.within, func(name string, v any) error {
		name, known := o.Body.match(name)
		if !known || !fits(o.Body[name], v) {
			return fmt.Errorf("it takes no field %s with %v", name, v)
		}
		seen[name] = true
		return nil
	})
	for _, name := range o.Required {
		if err == nil && !seen[name] {
			err = fmt.Errorf("it lacks the field %s", name)
		}
	}
	return err
}

// answered reports the parts of an answer that the API would not give.
func (o *operation) answered(status int, answer any) error {
	names, known := o.Answers[strconv.Itoa(status)]
	if !known {
		return fmt.Errorf("it does not answer with status %d", status)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	fields := values{}
	for _, name := range names {
		fields[name] = nil
	}
	return walk(v, "", fields.within, func(name string, _ any) error {
		if name, known := fields.match(name); !known {
			return fmt.Errorf("it has no field %s in its answer", name)
		}
		return nil
	})
}

// walk visits the fields of a value, and the fields within them if within returns true for the
// name.
func walk(v any, at string, within func(name string) bool, visit func(name string, v any) error) error {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := walk(one, at, within, visit); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			name = at + name
			if err := visit(name, one); err != nil {
				return err
			}
			if !within(name) {
				continue
			}
			if err := walk(one, name+".", within, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// match returns the listed name that a name matches. A listed name may have stars.
func (v values) match(name string) (string, bool) {
	if _, known := v[name]; known {
		return name, true
	}
	parts := strings.Split(name, ".")
	for known := range v {
		if slices.EqualFunc(strings.Split(known, "."), parts, func(a, b string) bool { return a == "*" || a == b }) {
			return known, true
		}
	}
	return name, false
}

// within reports whether names within a name are listed.
func (v values) within(name string) bool {
	listed, known := v.match(name)
	for other := range v {
		if known && strings.HasPrefix(other, listed+".") {
			return true
		}
	}
	return false
}

// fits reports whether a value, of JSON or the text of a parameter, is allowed by a list.
func fits(list []string, v any) bool {
	text, isText := v.(string)
	return list == nil || slices.ContainsFunc(list, func(one string) bool {
		switch one {
		case "<string>":
			return isText
		case "<integer>":
			n, isNumber := v.(float64)
			_, err := strconv.Atoi(text)
			return isNumber && n == float64(int64(n)) || isText && err == nil
		case "<datetime>":
			_, err := time.Parse(time.RFC3339, text)
			return isText && err == nil
		case "<boolean>":
			_, is := v.(bool)
			return is
		case "<array>":
			_, is := v.([]any)
			return is
		case "<object>":
			_, is := v.(map[string]any)
			return is
		}
		return isText && one == text
	})
}
