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

// Fixture is a crash program of testdata/crash with one bug.
//
// The source says how it is to be treated in comments of the form
// `// KEY: value`:
//
//	WANT      kind access:@LINE+n or kind access:@LINE+n..+m, see Want;
//	          exactly one
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
	list, err := loadFixtures(filepath.Join(root, "testdata", "crash"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Named returns one fixture of the table by its name, the source's file name
// without its ending.
func Named(t testing.TB, name string) *Fixture {
	t.Helper()
	for _, f := range Fixtures(t) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("testdata/crash has no fixture %q", name)
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
	for _, d := range directives(text) {
		if err := f.apply(d); err != nil {
			return nil, err
		}
	}
	if f.Want.Kind == "" {
		return nil, errors.New("no WANT comment")
	}
	if len(f.AllVariants()) == 0 {
		return nil, fmt.Errorf("no such variants: %s", strings.Join(f.only, " "))
	}
	return f, nil
}

func (f *Fixture) apply(d directive) error {
	switch d.key {
	case "WANT":
		if f.Want.Kind != "" {
			return fmt.Errorf("line %d: a second WANT comment", d.line)
		}
		want, err := parseWant(d.value, d.line)
		f.Want = want
		return err
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
		return fmt.Errorf("line %d: unknown directive %s", d.line, d.key)
	}
	return nil
}
