package causetest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

// Case is a program with a bug, compiled at one level of optimisation, and the expected findings
// about it.
type Case struct {
	Name   string
	Source string // absolute path
	// Level is O0 or O2, Compiler gcc or clang; of Rust there is one.
	Level, Compiler string

	// Kind, Variable and Pattern are the ones that fit best. IsKind, IsVariable and IsPattern know
	// others that are right as well. Variable and Pattern may be empty.
	Kind     evidence.CauseKind
	Variable string
	Pattern  evidence.PatternKind
	// Missing is the lock that one side of the accesses lacks; empty: there is
	// no such lock.
	Missing string

	// Line is the line to be named first. Accesses are the lines of the pattern's accesses in time
	// order, Hops the lines that a bad value passed through, earliest first. ObjectLine is where
	// the object was allocated; 0: there is none.
	Line       int
	Accesses   []int
	Hops       []int
	ObjectLine int

	// Search is why no recording alone can show the failing order; empty: one can.
	Search string

	kinds, variables, patterns []string
	ends                       ending
	runs, inputs, files        map[runKind][]string
	flags, levels, compilers   []string
	short                      []string // the levels without FullMatrix; nil: by the name
}

// runKind is which of the two kinds of run a comment is about.
type runKind string

const (
	failing runKind = "fail"
	passing runKind = "pass"
)

// Levels are those that programs are compiled with.
var Levels = []string{"O0", "O2"}

// FullMatrix says that each case is wanted at each level, and of each compiler:
// DIAGNOSE_MATRIX=full.
func FullMatrix() bool { return os.Getenv("DIAGNOSE_MATRIX") == "full" }

// Cases are those of a directory, by name, each at one of the levels, and a few at
// both; with FullMatrix all.
func Cases(t testing.TB, dir string) []*Case {
	t.Helper()
	var list []*Case
	for _, ext := range []string{"*.c", "*.cc", "*.rs"} {
		paths, err := filepath.Glob(filepath.Join(dir, ext))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			c, err := Read(p)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, c.inMatrix()...)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no cases in %s", dir)
	}
	slices.SortStableFunc(list, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (c *Case) inMatrix() []*Case {
	if FullMatrix() {
		return c.variants(c.levels, c.compilers)
	}
	sum := 0
	for _, b := range []byte(c.Name) {
		sum += int(b)
	}
	levels := c.levels
	if c.short != nil {
		levels = c.short
	} else if sum%16 > 0 {
		levels = levels[sum%len(levels):][:1]
	}
	return c.variants(levels, c.compilers[:1])
}

func (c *Case) variants(levels, compilers []string) []*Case {
	var list []*Case
	for _, compiler := range compilers {
		for _, level := range levels {
			other := *c
			other.Level, other.Compiler = level, compiler
			list = append(list, &other)
		}
	}
	return list
}

// IsKind tells whether a cause may be of that kind.
func (c *Case) IsKind(k evidence.CauseKind) bool { return slices.Contains(c.kinds, string(k)) }

// IsPattern tells whether the accesses may be said to have that pattern. A case
// without one has no pattern.
func (c *Case) IsPattern(p evidence.PatternKind) bool {
	return slices.Contains(c.patterns, string(p)) || p == "" && len(c.patterns) == 0
}

// IsLine tells whether a cause may name that line first: Line itself, or one of
// the accesses.
func (c *Case) IsLine(line int) bool { return line == c.Line || slices.Contains(c.Accesses, line) }

// IsVariable tells whether the names are those of the variables, in any order. A
// case without a variable is satisfied by each.
func (c *Case) IsVariable(names ...string) bool {
	if len(c.variables) == 0 {
		return true
	}
	object := fmt.Sprintf("%s:%d", filepath.Base(c.Source), c.ObjectLine)
	return slices.ContainsFunc(c.variables, func(alternative string) bool {
		wanted := strings.Split(strings.ReplaceAll(alternative, "@OBJECT", object), ",")
		return len(names) == len(wanted) && !slices.ContainsFunc(wanted, func(w string) bool { return !slices.ContainsFunc(names, func(n string) bool { return matches(w, n) }) })
	})
}

// matches is path.Match in which only * has a meaning.
func matches(pattern, name string) bool {
	quote := strings.NewReplacer("[", `\[`, "?", `\?`, "/", "\x00")
	ok, err := path.Match(quote.Replace(pattern), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

func (c *Case) String() string {
	if c.Compiler != c.compilers[0] {
		return c.Name + "-" + c.Level + "-" + c.Compiler
	}
	return c.Name + "-" + c.Level
}
