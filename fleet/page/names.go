package page

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"diagnose/corpus"
	"diagnose/evidence"
	"diagnose/reports"
)

// The bounds of the index.
const (
	// mostNames bounds the names of one report, mostIndexed the reports whose names are kept.
	mostNames   = 5000
	mostIndexed = 20_000
	// indexTime bounds how long one search reads reports. The next one continues.
	indexTime = time.Second
)

// nameIndex has the functions and variables that reports name, by the failure and the version of
// its diagnosis. It is filled by searches, because to read a report takes milliseconds.
type nameIndex struct {
	corpus *corpus.Corpus

	mu    sync.Mutex
	names map[string]string
}

func newNameIndex(c *corpus.Corpus) *nameIndex {
	return &nameIndex{corpus: c, names: map[string]string{}}
}

// find returns for each cause whether the report of its newest failure names the words, and how
// many reports there was no time to read.
func (x *nameIndex) find(ctx context.Context, causes []*cause, words []string) (found []*cause, unread int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	end := time.Now().Add(indexTime)
	for _, c := range causes {
		e := &c.Entries[0]
		if !e.Diagnosis.Diagnosed {
			continue
		}
		key := e.ID + " " + e.Diagnosis.Version
		text, ok := x.names[key]
		if !ok {
			if time.Now().After(end) {
				unread++
				continue
			}
			if text, err = x.read(ctx, e.ID); err != nil {
				return nil, 0, err
			}
			if len(x.names) >= mostIndexed {
				clear(x.names)
			}
			x.names[key] = text
		}
		if containsAll(text, words) {
			found = append(found, c)
		}
	}
	return found, unread, nil
}

// read returns the names of a report, in lower case and separated by line feeds. A report that
// cannot be read has none: an archive may have brought it.
func (x *nameIndex) read(ctx context.Context, id string) (string, error) {
	text, err := x.corpus.Report(ctx, id)
	var input *corpus.InputError
	if errors.As(err, &input) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	doc, err := readDocument(text)
	if err != nil {
		return "", nil
	}
	return strings.ToLower(strings.Join(namesOf(doc.Case), "\n")), nil
}

// namesOf returns the functions, variables and files that a case names, each once.
func namesOf(c *evidence.Case) []string {
	n := &nameWalk{seen: map[string]bool{}}
	n.walk(reflect.ValueOf(c), 0)
	return n.list
}

type nameWalk struct {
	list []string
	seen map[string]bool
}

func (n *nameWalk) add(names ...string) {
	for _, t := range names {
		if t != "" && !n.seen[t] && len(n.list) < mostNames {
			n.seen[t] = true
			n.list = append(n.list, reports.Span(t))
		}
	}
}

// mostNesting bounds the depth of a walk. The types of a Case are not recursive but for values.
const mostNesting = 64

func (n *nameWalk) walk(v reflect.Value, depth int) {
	if depth > mostNesting || len(n.list) >= mostNames {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n.walk(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			n.walk(v.Index(i), depth+1)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			n.walk(v.MapIndex(k), depth+1)
		}
	case reflect.Struct:
		if v.CanInterface() {
			switch x := v.Interface().(type) {
			case evidence.Site:
				n.add(x.Function, x.File)
			case evidence.Variable:
				n.add(x.Name)
			case evidence.Watched:
				n.add(x.Name)
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n.walk(v.Field(i), depth+1)
			}
		}
	}
}
