package sanitizer

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// Place is a line of the program. File is relative to the top of its sources.
type Place struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function,omitempty"`
}

// Class is what sort of violation it is, as far as a diagnosis can contradict it.
type Class string

// The classes. Other is a violation that excludes no explanation: a bad pointer, for example.
const (
	Bounds   Class = "bounds"
	Lifetime Class = "lifetime"
	Race     Class = "race"
	Locks    Class = "locks"
	Other    Class = "other"
)

// Violation is the first violation of a run.
type Violation struct {
	// Kind is the sanitizer's word: "heap-buffer-overflow".
	Kind  string `json:"kind"`
	Class Class  `json:"class"`
	// Accesses are the innermost places in the program's own code: one, or those of both
	// threads of a race.
	Accesses []Place `json:"accesses"`
	// Callers are the outer places of the first access, innermost first.
	Callers []Place `json:"callers,omitempty"`
	// Allocated and Freed are the stacks in the program's own code of the calls that
	// allocated and freed the object, innermost first; empty: it is none of the heap.
	Allocated []Place `json:"allocated,omitempty"`
	Freed     []Place `json:"freed,omitempty"`
	// Variable is the name of a variable that is no object of the heap.
	Variable string `json:"variable,omitempty"`
}

var classes = map[string]Class{
	"heap-buffer-overflow": Bounds, "stack-buffer-overflow": Bounds, "stack-buffer-underflow": Bounds, "global-buffer-overflow": Bounds,
	"dynamic-stack-buffer-overflow": Bounds, "container-overflow": Bounds, "negative-size-param": Bounds, "index-out-of-bounds": Bounds,
	"heap-use-after-free": Lifetime, "stack-use-after-return": Lifetime, "stack-use-after-scope": Lifetime, "double-free": Lifetime,
	"bad-free": Lifetime, "data-race": Race, "heap-use-after-free-race": Race, "lock-order-inversion": Locks,
}

// section is a title and the stack below it.
type section struct {
	title  string
	frames []Place
}

// Read finds the first violation in a report about a program that was built below top.
// It is nil if the text is no report, or names no place of the program.
func Read(text, top string) *Violation {
	r := reader{top: filepath.Clean(top) + "/"}
	for line := range strings.Lines(text) {
		if !r.line(strings.TrimRight(line, "\n")) {
			break
		}
	}
	return r.violation()
}

// ReadAll finds all violations in reports, as Read the first.
func ReadAll(text, top string) (list []*Violation) {
	r := reader{top: filepath.Clean(top) + "/"}
	take := func() {
		if v := r.violation(); v != nil {
			list = append(list, v)
		}
		r = reader{top: r.top, files: r.files}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); !r.line(line) {
			take()
			r.line(line) // the first line of the next
		}
	}
	take()
	return list
}

type reader struct {
	top      string
	files    map[string][]string // those below the top, by name; nil: they were not looked for
	kind     string
	place    *Place // that UBSan names without a stack
	sections []section
	variable string
}

// line reads one line; false: the first report ends before it.
func (r *reader) line(line string) bool {
	text := strings.TrimSpace(line)
	if kind := kindOf(text); kind != "" {
		if r.kind != "" {
			return false
		}
		r.kind = kind
		r.place = r.runtimeError(text)
		r.sections = append(r.sections, section{title: text})
		return true
	}
	if r.kind == "" {
		return true
	}
	switch {
	case strings.HasPrefix(text, "#"):
		r.frame(text)
	case strings.HasPrefix(text, "SUMMARY:"):
		return false
	case strings.HasSuffix(text, ":"), strings.HasPrefix(text, "Uninitialized value was"):
		r.sections = append(r.sections, section{title: text})
	case strings.Contains(text, "Location is global"), strings.Contains(text, "global variable"), strings.Contains(text, "<== Memory access"):
		if r.variable == "" {
			r.variable = quoted(text)
		}
	}
	return true
}

// kindOf is the kind that a title names; empty: the line is no title.
func kindOf(text string) string {
	if _, after, found := strings.Cut(text, "ERROR: AddressSanitizer: "); found {
		if rest, double := strings.CutPrefix(after, "attempting "); double {
			after = rest
		}
		word, _, _ := strings.Cut(after, " ")
		if strings.HasPrefix(after, "free on address which was not malloc") {
			return "bad-free"
		}
		return strings.TrimSuffix(word, ":")
	}
	if _, after, found := strings.Cut(text, "WARNING: MemorySanitizer: "); found {
		return after
	}
	if _, after, found := strings.Cut(text, "ThreadSanitizer: "); found && !strings.HasPrefix(text, "SUMMARY") {
		kind, _, _ := strings.Cut(after, " (")
		switch kind {
		case "data race":
			return "data-race"
		case "heap-use-after-free":
			return "heap-use-after-free-race"
		}
		word, _, _ := strings.Cut(kind, " ")
		return word
	}
	if _, after, found := strings.Cut(text, ": runtime error: "); found {
		if strings.HasPrefix(after, "index ") && strings.Contains(after, "out of bounds") {
			return "index-out-of-bounds"
		}
		return "undefined"
	}
	return ""
}

// runtimeError is the place at the beginning of a line of UBSan.
func (r *reader) runtimeError(text string) *Place {
	where, _, found := strings.Cut(text, ": runtime error: ")
	if !found {
		return nil
	}
	return r.placeIn(where, "")
}

// placeIn is the place of a text like /top/file.c:12:3; nil if it is not below the top.
func (r *reader) placeIn(where, function string) *Place {
	parts := strings.Split(where, ":")
	if len(parts) < 2 {
		return nil
	}
	inside := r.inside(filepath.Clean(parts[0]))
	line, err := strconv.Atoi(parts[1])
	if inside == "" || err != nil || line == 0 {
		return nil // of a library, whose names are of another machine
	}
	return &Place{inside, line, function}
}

// inside is a file's path below the top; empty: it is not there. A path may be relative to the directory in which the compiler ran,
// which is the top or one below it that the report does not have.
func (r *reader) inside(path string) string {
	if filepath.IsAbs(path) {
		if inside, found := strings.CutPrefix(path, r.top); found {
			return inside
		}
		return ""
	}
	if !filepath.IsLocal(path) {
		return ""
	}
	if r.files == nil {
		r.files = filesBelow(r.top)
	}
	var found []string
	for _, file := range r.files[filepath.Base(path)] {
		if file == path {
			return file
		}
		if strings.HasSuffix(file, "/"+path) {
			found = append(found, file)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// filesBelow are the files of a tree by their names, relative to its top. What cannot be read is left out.
func filesBelow(top string) map[string][]string {
	files := map[string][]string{}
	filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if inside, relErr := filepath.Rel(top, path); err == nil && relErr == nil && d.Type().IsRegular() {
			files[d.Name()] = append(files[d.Name()], inside)
		}
		return nil
	})
	return files
}

// frame reads "#1 0x55 in name /top/file.c:12" or TSan's "#1 name /top/file.c:12 (program+0x1)".
func (r *reader) frame(text string) {
	text, _, _ = strings.Cut(text, " (")
	cut := strings.LastIndexByte(text, ' ')
	if cut < 0 {
		return
	}
	names := strings.Fields(text[:cut])
	if p := r.placeIn(text[cut+1:], names[len(names)-1]); p != nil {
		last := &r.sections[len(r.sections)-1]
		last.frames = append(last.frames, *p)
	}
}

// quoted is the text between the first two quotation marks.
func quoted(text string) string {
	_, after, _ := strings.Cut(text, "'")
	name, _, _ := strings.Cut(after, "'")
	return name
}

func (r *reader) violation() *Violation {
	if r.kind == "" {
		return nil
	}
	v := &Violation{Kind: r.kind, Class: classes[r.kind], Variable: r.variable}
	if v.Class == "" {
		v.Class = Other
	}
	for i, s := range r.sections {
		r.part(v, i, s)
	}
	if len(v.Accesses) == 0 && r.place != nil {
		v.Accesses = []Place{*r.place}
	}
	if len(v.Accesses) == 0 {
		return nil
	}
	return v
}

// part gives one stack to the part of the violation that its title is about.
func (r *reader) part(v *Violation, i int, s section) {
	if len(s.frames) == 0 {
		return
	}
	title := strings.ToLower(s.title)
	switch {
	case strings.Contains(title, "freed by"):
		v.Freed = s.frames
	case strings.Contains(title, "allocated"), strings.Contains(title, "created by a heap allocation"):
		v.Allocated = s.frames
	case strings.Contains(title, "thread") && strings.Contains(title, "created"), strings.HasPrefix(title, "mutex m") && v.Class != Locks:
	case strings.Contains(title, "is located in stack of"), strings.Contains(title, "uninitialized value was"):
	case i == 0, v.Class == Race || v.Class == Locks, len(v.Accesses) == 0:
		if len(v.Accesses) == 0 {
			v.Callers = s.frames[1:]
		}
		v.Accesses = append(v.Accesses, s.frames[0])
	}
}
