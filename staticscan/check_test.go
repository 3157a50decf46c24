package staticscan_test

import (
	"fmt"
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

// checkCase is a function of testdata/checks.c and the comparisons that may be told of it, as text; "": none.
type checkCase struct {
	name  string
	texts []string
	// certain is what the left side was, if that is told as certain; last is the symbol of one of the steps of its origin.
	certain string
	last    string
	// always: it is told at every level of optimisation.
	always bool
}

var checkCases = []checkCase{
	{"returned", []string{"at < 0"}, "-1", "lookup", true},
	{"member", []string{"q->count > q->limit"}, "", "q->count", true},
	{"pointer", []string{"found == 0"}, "0x0", "find", true},
	{"element", []string{"v < 0", "input == 2"}, "-5", "", true}, // clang finds at compile time which element is negative
	{"masked", []string{"rax == 0", "q->flags & 8 == 0"}, "0", "q->flags", true},
	{"filled", []string{"v != 41", " != 41"}, "", "", true},
	{"second", []string{"b <= 0"}, "0", "", false}, // of which of the two is certain at -O0 alone
	{"wrapped", []string{"n > 10", "n >= 11"}, "11", "input", true},
	{"kept", []string{"n > 9", "n >= 10"}, "12", "", true},
	{"counted", []string{"n > 10", "n >= 11", "rdi > 10", "rdi >= 11"}, "12", "", true},
	{"real", []string{""}, "", "", false},
	{"always", []string{"", "the result of strcmp == 0"}, "0", "", false}, // it is called so
	{"several", []string{"", "n == 9"}, "9", "", false},
}

// TestChecked: the comparison that led to the end is told with the program's names, and never with a value that it did not have.
func TestChecked(t *testing.T) {
	for _, build := range [][]string{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}, {"clang", "-O2"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/checks.c", Compiler: build[0], Output: "checks", Flags: []string{build[1], "-w"}})
		for _, c := range checkCases {
			t.Run(build[0]+build[1]+"/"+c.name, func(t *testing.T) {
				in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{c.name}}))
				check, ok := staticscan.Checked(in, staticscan.OwnFrame(in))
				c.judge(t, &check, ok)
			})
		}
	}
}

func (c *checkCase) judge(t *testing.T, check *evidence.Check, ok bool) {
	t.Helper()
	if !ok {
		if c.always {
			t.Error("no comparison")
		}
		return
	}
	if text := checkText(check); !slices.Contains(c.texts, text) {
		t.Errorf("the comparison %q, want one of %q", text, c.texts)
		return
	}
	left := &check.Left
	if left.Proof == evidence.FromCore && c.certain != "" && left.Value != c.certain && left.Name != "input" {
		t.Errorf("the left side was %s, want %s", left.Value, c.certain)
	}
	named := c.last == "" || slices.ContainsFunc(left.Origin, func(s evidence.OriginStep) bool { return s.Symbol == c.last })
	if !named {
		t.Errorf("no step of %v has %s", left.Origin, c.last)
	}
}

func checkText(c *evidence.Check) string {
	left, right := c.Left.Name, c.Right.Name
	if left == "" && c.Left.Mask == 0 {
		left = c.Left.Register
	}
	if c.Left.Mask != 0 {
		left = fmt.Sprintf("%s & %d", left, c.Left.Mask)
	}
	if c.Right.Constant {
		right = c.Right.Value
	}
	return fmt.Sprintf("%s %s %s", left, c.Relation, right)
}
