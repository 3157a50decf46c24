package driver_test

import (
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// TestUnwrap: of a panic about a value that is not there, the plain core tells which function returned it, or was given the
// address that it was put at.
func TestUnwrap(t *testing.T) {
	for _, level := range []string{"0", "1", "2", "3"} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/panics/unwrap.rs", Compiler: "rustc", Output: "unwrap",
			Flags: []string{"-C", "panic=abort", "-C", "opt-level=" + level}})
		for _, c := range []struct{ name, from string }{
			{"pointer", "find"}, {"number", "port"}, {"result", "parsed"}, {"owned", "text"},
		} {
			t.Run("opt-level-"+level+"/"+c.name, func(t *testing.T) {
				f := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{c.name}})}).Failure
				if f.Check == nil {
					t.Fatal("no comparison is told")
				}
				told := slices.ContainsFunc(f.Check.Left.Origin, func(s evidence.OriginStep) bool {
					return strings.Contains(s.Text, "Settings::"+c.from)
				})
				if !told {
					t.Errorf("%s %s %s: %v", f.Check.Left.Name, f.Check.Relation, f.Check.Right.Value, f.Check.Left.Origin)
				}
			})
		}
	}
}
