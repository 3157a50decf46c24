package driver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// smash is a function of testdata/smashed and what the report has to name.
type smash struct {
	name, array string
	size        uint64
	runs        []evidence.RunKind
	// callee is what may have written the array; empty: a store of the function, which optimised code may have at an address that
	// is not known. Without optimisation it may be a method instead.
	callee, method string
	// silent: in optimised code without a guard the array need not be named, but no other may be. A function that calls no other
	// leaves no trace that tells it from others, and at -O0 a loop may overwrite its own counter.
	silent bool
}

var (
	asText     = []evidence.RunKind{evidence.RunText}
	asNumbers  = []evidence.RunKind{evidence.RunNumbers, evidence.RunProgression}
	smashesInC = []smash{
		{"by_strcpy", "path", 40, asText, "strcpy", "", false}, {"by_sprintf", "line", 48, asText, "sprintf", "", false},
		{"by_memcpy", "packet", 64, []evidence.RunKind{evidence.RunCopy}, "memcpy", "", false}, {"by_loop", "values", 64, asNumbers, "", "", true},
		{"by_squares", "squares", 48, asNumbers, "", "", true}, {"in_struct", "s.name", 24, asText, "strcpy", "", false},
		{"by_read", "input", 32, asText, "read", "", false}, {"by_memset", "marks", 40, []evidence.RunKind{evidence.RunPattern}, "memset", "", false},
		{"by_own", "word", 28, asText, "copy_words", "", false},
	}
	smashesInCxx = []smash{
		{"by_method", "label.chars", 24, asText, "strcpy", "Label::Label(", false},
		{"by_copy", "p.body._M_elems", 32, asText, "memcpy", "std::array<", false},
	}
)

// smashBuild is a way to compile a program that smashes its stack.
type smashBuild struct {
	source, compiler, level string
	guard, quick            bool
}

func (b smashBuild) String() string {
	name := b.source + b.compiler + b.level
	if b.guard {
		name += "-guard"
	}
	return name
}

func (b smashBuild) compile(t *testing.T) string {
	guard := "-fno-stack-protector"
	if b.guard {
		guard = "-fstack-protector-all"
	}
	return crashtest.Compile(t, crashtest.Program{Source: "testdata/smashed/" + b.source, Compiler: b.compiler, Output: "smash",
		Flags: []string{b.level, "-w", "-U_FORTIFY_SOURCE", guard}})
}

// smashBuilds are all ways to compile a program, of which DIAGNOSE_MATRIX=full takes all.
func smashBuilds(source string) (list []smashBuild) {
	compilers := []string{"gcc", "clang"}
	if strings.HasSuffix(source, ".cc") {
		compilers = []string{"g++", "clang++"}
	}
	for i, compiler := range compilers {
		for k, level := range []string{"-O0", "-O1", "-O2"} {
			for _, guard := range []bool{false, true} {
				b := smashBuild{source, compiler, level, guard, !guard && k == 1+i || guard && k == 0 && i == 0}
				if b.quick || os.Getenv("DIAGNOSE_MATRIX") == "full" {
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// TestOverrun: each array that is written past its end over a word of its frame is named, with what wrote it. The twins without
// the bug run to their end.
func TestOverrun(t *testing.T) {
	for source, list := range map[string][]smash{"smash.c": smashesInC, "smash.cc": smashesInCxx} {
		for _, b := range smashBuilds(source) {
			t.Run(b.String(), func(t *testing.T) {
				exe := b.compile(t)
				for _, s := range list {
					t.Run(s.name, func(t *testing.T) {
						if out, err := exec.Command(exe, s.name, "fit").CombinedOutput(); err != nil {
							t.Errorf("the fixed twin: %v\n%s", err, out)
						}
						s.check(t, b, exe)
					})
				}
			})
		}
	}
}

func (s *smash) check(t *testing.T, b smashBuild, exe string) {
	if s.silent && !b.guard && exec.Command(exe, s.name, "160").Run() == nil {
		t.Log("the counter was overwritten, and the loop ended")
		return
	}
	o := overrunIn(t, exe, s.name, "160")
	if o == nil {
		if !s.silent || b.guard {
			t.Error("no array is named")
		}
		return
	}
	a := &o.Arrays[0]
	if len(o.Arrays) != 1 || a.Name != s.array || a.Size != s.size || a.Line == 0 || !slices.Contains(s.runs, o.Run) {
		t.Errorf("%s of %v, want %s of %d bytes as %v", o.Run, o.Arrays, s.array, s.size, s.runs)
	}
	word := evidence.WordReturnAddress
	if b.guard {
		word = evidence.WordGuard
	}
	if o.Word != word || o.WordAddr < a.Addr+evidence.Addr(a.Size) || o.End <= o.WordAddr {
		t.Errorf("the word is %s at %v, and the run ends at %v", o.Word, o.WordAddr, o.End)
	}
	for _, w := range o.Writers {
		method := s.method != "" && b.level == "-O0" && strings.HasPrefix(w.Callee, s.method) && !w.Writes
		if !method && (w.Callee != s.callee || w.Writes == (s.callee == "copy_words") || len(o.Writers) > 1) || w.Site.Line == 0 {
			t.Errorf("written by %+v, want %q alone", o.Writers, s.callee)
		}
	}
	if s.callee != "" && len(o.Writers) == 0 && s.method == "" {
		t.Errorf("it is not told that %s wrote it", s.callee)
	}
	if same := slices.ContainsFunc(o.Same, func(x evidence.SameBytes) bool { return x.Place == evidence.CopyHeap }); s.name == "by_memcpy" && !same {
		t.Errorf("the bytes are those of an object of the heap, and not only of %+v", o.Same)
	}
}

// overrunIn crashes a program and returns the array that its report names; nil: it names none.
func overrunIn(t *testing.T, exe string, args ...string) *evidence.StackOverrun {
	t.Helper()
	c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: args, Env: []string{"LIBC_FATAL_STDERR_=1"}})})
	for i := range c.Findings {
		if f := &c.Findings[i]; f.Overrun != nil {
			if c.Failure.Kind != evidence.StackSmashing {
				t.Errorf("an array is named, and the failure is %s", c.Failure.Kind)
			}
			return f.Overrun
		}
	}
	return nil
}

// TestOverrunLengths writes texts of all lengths around the word. Where an array is named it is the right one, whether the text goes
// over all of the word or a part of it.
func TestOverrunLengths(t *testing.T) {
	const first, last, step = 41, 72, 3
	named := 0
	for _, b := range []smashBuild{{"smash.c", "gcc", "-O0", false, true}, {"smash.c", "clang", "-O2", false, true}} {
		exe := b.compile(t)
		for length := first; length <= last; length += step {
			if exec.Command(exe, "by_strcpy", fmt.Sprint(length)).Run() == nil {
				continue
			}
			o := overrunIn(t, exe, "by_strcpy", fmt.Sprint(length))
			if o == nil {
				continue
			}
			named++
			if len(o.Arrays) != 1 || o.Arrays[0].Name != "path" || o.End-o.Start != evidence.Addr(length) {
				t.Errorf("%v, %d characters: %+v from %v to %v", b, length, o.Arrays, o.Start, o.End)
			}
		}
	}
	if named < 8 {
		t.Errorf("the array is named for %d lengths only", named)
	}
}

// TestNoOverrun: failures of other kinds are no smashed stacks, whatever the arrays of the frame hold.
func TestNoOverrun(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("testdata", "smashed", "other.c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range smashBuilds("other.c") {
		exe := b.compile(t)
		for _, name := range []string{"null_call", "wild_call", "unmapped_call", "tail_jump", "over_pointer", "bad_methods", "exhausted", "bad_return",
			"bad_return_text", "null_read"} {
			if !strings.Contains(string(source), `"`+name+`"`) {
				t.Errorf("the program has no %s", name)
			}
			c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{name}})})
			for _, f := range c.Findings {
				if f.Overrun != nil {
					t.Errorf("%v, %s: %s", b, name, f.Summary)
				}
			}
			if c.Failure.Kind == evidence.StackSmashing {
				t.Errorf("%v, %s: %s", b, name, c.Failure.Sentence)
			}
		}
	}
}
