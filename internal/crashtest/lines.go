package crashtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Lines is a place in a fixture's sources: lines First to Last of File.
type Lines struct {
	File        string // its base name
	First, Last int
}

// Has reports whether a line of a source file is in l.
func (l Lines) Has(file string, line int) bool {
	return file[strings.LastIndexByte(file, '/')+1:] == l.File && line >= l.First && line <= l.Last
}

// marks are the places that a fixture's sources name with `// @name` at the
// end of a line.
type marks map[string]Lines

var markPattern = regexp.MustCompile(`(?:// |/\* )@([a-z][a-z0-9-]*)(?: \*/)?\s*$`)

// addSource adds the marks of one source file.
func (m marks) addSource(file, text string) error {
	for i, line := range strings.Split(text, "\n") {
		found := markPattern.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if _, ok := m[found[1]]; ok {
			return fmt.Errorf("line %d: a second mark @%s", i+1, found[1])
		}
		m[found[1]] = Lines{file, i + 1, i + 1}
	}
	return nil
}

// resolver finds the places that the directive on a line refers to.
type resolver struct {
	file  string
	line  int
	marks marks
	used  map[string]bool
}

var referencePattern = regexp.MustCompile(`^@(?:LINE([+-][0-9]+)?|([a-z][a-z0-9-]*))(?:\.\.(?:([+-][0-9]+)|@([a-z][a-z0-9-]*)))?$`)

// lines reads `@LINE`, `@LINE+n`, `@LINE+n..+m`, `@mark` or `@mark..@mark`.
func (r *resolver) lines(text string) (Lines, error) {
	m := referencePattern.FindStringSubmatch(text)
	if m == nil {
		return Lines{}, fmt.Errorf("%q is no place like @LINE+n or @mark", text)
	}
	first, err := r.end(m[1], m[2])
	if err != nil {
		return Lines{}, err
	}
	if m[3] == "" && m[4] == "" {
		return first, nil
	}
	last, err := r.end(m[3], m[4])
	if err != nil {
		return Lines{}, err
	}
	if first.File != last.File || last.Last < first.First {
		return Lines{}, fmt.Errorf("%q is no range of a file's lines", text)
	}
	return Lines{first.File, first.First, last.Last}, nil
}

// end is one end of a range: a distance from the directive, or a mark.
func (r *resolver) end(distance, mark string) (Lines, error) {
	if mark != "" {
		at, ok := r.marks[mark]
		if !ok {
			return Lines{}, fmt.Errorf("there is no mark @%s", mark)
		}
		r.used[mark] = true
		return at, nil
	}
	n := 0
	if distance != "" {
		var err error
		if n, err = strconv.Atoi(distance); err != nil {
			return Lines{}, err
		}
	}
	if r.line+n < 1 {
		return Lines{}, fmt.Errorf("line %d is no line of the file", r.line+n)
	}
	return Lines{r.file, r.line + n, r.line + n}, nil
}
