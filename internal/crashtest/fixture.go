package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// Fixture is a crash program of testdata/crash or testdata/heap with one bug.
//
// The source says how it is to be treated in comments of the form
// `// KEY: value`:
//
//	WANT      kind access:@LINE+n or kind access:@LINE+n..+m, see Want;
//	          exactly one
//	HEAP      a finding, see HeapWant; or "nothing": the bug leaves no evidence,
//	          the program exits with status 0, and there is no WANT. Programs
//	          of testdata/heap have one or more
//	OPTIONS   DIAGNOSE_OPTIONS of the run under the agent
//	FLAGS     compiler flags for every variant
//	ARGS      arguments of the run; {dir} is the directory of the executable
//	VARIANTS  the names of the only variants that make sense
//	LIBRARY   a source in testdata/crash/lib that becomes a stripped shared
//	          library, linked to the program
//	PLUGIN    the same, not stripped and not linked, for dlopen
//	KERNEL    gdb's core of the program does not serve, see NeedKernelCores
//	HANG      the program deadlocks: the core is taken when all its threads
//	          wait for a futex
//
// Compiled with -DFIXED (--cfg fixed in Rust) the program has no bug and
// exits with status 0.
type Fixture struct {
	Name   string
	Source string // absolute path
	Want   Want
	Hang   bool
	// Heap are the findings of a run under the agent with Options; Quiet says
	// that nothing comes of the bug.
	Heap    []HeapWant
	Quiet   bool
	Options string

	flags, args, only []string
	library, plugin   string
	kernel            bool
}

// Language is "c", "c++" or "rust".
func (f *Fixture) Language() string {
	switch filepath.Ext(f.Source) {
	case ".cc":
		return "c++"
	case ".rs":
		return "rust"
	}
	return "c"
}

// Fixtures returns the fixture table, sorted by name.
func Fixtures(t testing.TB) []*Fixture {
	t.Helper()
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	list, err := loadFixtures(filepath.Join(root, "internal", "testdata", "crash"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// HeapFixtures returns the table of programs that misuse the heap, sorted by
// name.
func HeapFixtures(t testing.TB) []*Fixture {
	t.Helper()
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	list, err := loadFixtures(filepath.Join(root, "internal", "testdata", "heap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if len(f.Heap) == 0 && !f.Quiet {
			t.Fatalf("%s: no HEAP comment", f.Source)
		}
	}
	return list
}

// Named returns one fixture of testdata/crash by its name, the source's file
// name without its ending.
func Named(t testing.TB, name string) *Fixture {
	t.Helper()
	return named(t, Fixtures(t), name)
}

// HeapNamed returns one fixture of testdata/heap by its name.
func HeapNamed(t testing.TB, name string) *Fixture {
	t.Helper()
	return named(t, HeapFixtures(t), name)
}

func named(t testing.TB, list []*Fixture, name string) *Fixture {
	t.Helper()
	for _, f := range list {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no fixture %q", name)
	return nil
}

func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or above it")
		}
		dir = parent
	}
}

func loadFixtures(dir string) ([]*Fixture, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []*Fixture
	seen := map[string]string{}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".c", ".cc", ".rs":
		default:
			continue
		}
		f, err := loadFixture(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if other, ok := seen[f.Name]; ok {
			return nil, fmt.Errorf("%s and %s have the same name", other, e.Name())
		}
		seen[f.Name] = e.Name()
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}

func loadFixture(path string) (*Fixture, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parseFixture(path, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func parseFixture(path, text string) (*Fixture, error) {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	f := &Fixture{Name: name, Source: path}
	list := directives(text)
	r := &resolver{file: filepath.Base(path), marks: marks{}, used: map[string]bool{}}
	if err := r.addMarks(path, text, list); err != nil {
		return nil, err
	}
	for _, d := range list {
		r.line = d.line
		if err := f.apply(d, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", d.line, err)
		}
	}
	for mark := range r.marks {
		if !r.used[mark] {
			return nil, fmt.Errorf("nothing refers to the mark @%s", mark)
		}
	}
	if f.Quiet == (f.Want.Kind != "") || f.Quiet && len(f.Heap) > 0 {
		return nil, errors.New("neither a WANT comment nor only \"HEAP: nothing\"")
	}
	if len(f.AllVariants()) == 0 {
		return nil, fmt.Errorf("no such variants: %s", strings.Join(f.only, " "))
	}
	return f, nil
}

// addMarks takes the marks of a fixture and of its libraries.
func (r *resolver) addMarks(path, text string, list []directive) error {
	if err := r.marks.addSource(r.file, text); err != nil {
		return err
	}
	for _, d := range list {
		if d.key != "LIBRARY" && d.key != "PLUGIN" {
			continue
		}
		library, err := os.ReadFile(filepath.Join(filepath.Dir(path), "lib", d.value))
		if err != nil {
			return err
		}
		if err := r.marks.addSource(d.value, string(library)); err != nil {
			return fmt.Errorf("%s: %w", d.value, err)
		}
	}
	return nil
}

func (f *Fixture) apply(d directive, r *resolver) error {
	switch d.key {
	case "WANT":
		if f.Want.Kind != "" {
			return errors.New("a second WANT comment")
		}
		want, err := parseWant(d.value, r)
		f.Want = want
		return err
	case "HEAP":
		if d.value == "nothing" {
			f.Quiet = true
			return nil
		}
		want, err := parseHeap(d.value, r)
		f.Heap = append(f.Heap, want)
		return err
	case "OPTIONS":
		f.Options = d.value
	case "FLAGS":
		f.flags = append(f.flags, strings.Fields(d.value)...)
	case "ARGS":
		f.args = strings.Fields(d.value)
	case "VARIANTS":
		f.only = strings.Fields(d.value)
	case "LIBRARY":
		f.library = d.value
	case "PLUGIN":
		f.plugin = d.value
	case "KERNEL":
		f.kernel = true
	case "HANG":
		f.Hang = true
	default:
		return fmt.Errorf("unknown directive %s", d.key)
	}
	return nil
}
