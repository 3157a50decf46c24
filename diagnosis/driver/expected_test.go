package driver_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// unexpected is a program of testdata/expected and what its report has to say of the operands. Empty fields are those of which
// nothing may be told.
type unexpected struct {
	source string
	flags  []string
	// optimised: without optimisation the failure is another one.
	optimised bool

	class, expected, called string
	format                  string
	divisor                 string
	operands                bool
	null                    string
	kind                    evidence.FailureKind
}

var unexpectedPrograms = []unexpected{
	{source: "downcast.cc", class: "File", expected: "AsciiArt", called: "print"},
	{source: "multi.cc", class: "Tape", expected: "Disk", called: "put"},
	{source: "callback.cc", class: "Square", expected: "Listener", called: "close"},
	{source: "member.cc", class: "Leaf", expected: "Branch"},
	{source: "member.cc", class: "Leaf", expected: "Branch", flags: []string{"-fno-pie", "-no-pie"}},
	{source: "heapformat.c", format: "hello %d%n%n%n%n"},
	{source: "heapformat.c", format: "hello %d%n%n%n%n", flags: []string{"-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"}, kind: evidence.FortifyFailure},
	{source: "globalformat.c", format: "100%s of %s people %s %s %s %s %s %s %s %s\n"},
	{source: "constantformat.c"},
	{source: "mean.c", divisor: "s->count - s->skipped", operands: true, kind: evidence.DivisionByZero},
	{source: "slot.c", divisor: "m->size", operands: true, kind: evidence.DivisionByZero},
	{source: "scale.c", divisor: "by", operands: true, kind: evidence.DivisionOverflow},
	{source: "find.c", null: "n", optimised: true, kind: evidence.NullPointer},
	{source: "sum.c", null: "last", optimised: true, kind: evidence.NullPointer},
}

// expectedBuilds are the compilers and levels for a source, of which DIAGNOSE_MATRIX=full takes all.
func expectedBuilds(source string, optimised bool) (list [][2]string) {
	compilers := []string{"gcc", "clang"}
	if strings.HasSuffix(source, ".cc") {
		compilers = []string{"g++", "clang++"}
	}
	for i, compiler := range compilers {
		for k, level := range []string{"-O0", "-O1", "-O2"} {
			quick := k == 2*i || optimised && k == 2
			if (quick || os.Getenv("DIAGNOSE_MATRIX") == "full") && !(optimised && k < 2) {
				list = append(list, [2]string{compiler, level})
			}
		}
	}
	return list
}

// TestExpected: operands that are others than the code expects are told, and right ones are not.
func TestExpected(t *testing.T) {
	for i := range unexpectedPrograms {
		u := &unexpectedPrograms[i]
		for _, b := range expectedBuilds(u.source, u.optimised) {
			t.Run(u.source+b[0]+b[1]+strings.Join(u.flags, ""), func(t *testing.T) {
				exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/expected/" + u.source, Compiler: b[0], Output: "expected",
					Flags: append([]string{b[1], "-w"}, u.flags...)})
				c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Env: []string{"LIBC_FATAL_STDERR_=1"}})})
				u.check(t, &c.Failure)
			})
		}
	}
}

func (u *unexpected) check(t *testing.T, f *evidence.Failure) {
	t.Helper()
	if u.kind != "" && f.Kind != u.kind {
		t.Errorf("the failure is %s: %s", f.Kind, f.Sentence)
	}
	u.checkClass(t, f.Class)
	switch {
	case f.Format == nil && u.format != "", f.Format != nil && (f.Format.Text != u.format || !f.Format.Whole || f.Format.Site == nil):
		t.Errorf("the format is %+v", f.Format)
	}
	switch d := f.Division; {
	case d == nil && u.divisor != "", d != nil && d.DivisorText != u.divisor:
		t.Errorf("the division is %+v", d)
	case d != nil && u.operands && len(d.Operands) == 0:
		t.Errorf("the division has no operands: %+v", d)
	}
	switch {
	case (len(f.LikelyNull) == 1) != (u.null != ""), u.null != "" && f.LikelyNull[0].Pointer != u.null:
		t.Errorf("likely null are %+v", f.LikelyNull)
	}
}

func (u *unexpected) checkClass(t *testing.T, o *evidence.ObjectClass) {
	t.Helper()
	switch {
	case o == nil && u.class == "":
	case o == nil:
		t.Error("no class is told")
	case o.Class != u.class || o.Expected != u.expected:
		t.Errorf("the class is told as %+v", o)
	case u.called != "" && (o.Called != u.called || o.Slot == nil):
		t.Errorf("called is %+v, want %s", o, u.called)
	}
}

// rightModes are the crashes of right.cc.
const rightModes = 14

// TestRightClass: nothing is told of objects that are what the code expects, whatever their bases are and whether they are under
// construction.
func TestRightClass(t *testing.T) {
	for _, b := range expectedBuilds("right.cc", false) {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/expected/right.cc", Compiler: b[0], Output: "right", Flags: []string{b[1], "-w"}})
		for mode := range rightModes {
			t.Run(fmt.Sprint(b, mode), func(t *testing.T) {
				args := []string{fmt.Sprint(mode)}
				const signalled = -1
				cmd := exec.Command(exe, args...)
				if cmd.Run() == nil || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != signalled {
					t.Skip("the compiler left the bad access out")
				}
				c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: args})})
				if o := c.Failure.Class; o != nil {
					t.Errorf("%s: %+v", c.Failure.Sentence, o)
				}
			})
		}
	}
}
