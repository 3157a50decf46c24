package staticscan_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

// TestEnteredWith: an argument is told from where the functions still have it, and only if it is certain.
func TestEnteredWith(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/entered.c", Compiler: compiler, Output: "entered",
			Flags: []string{"-O2", "-fno-inline"}})
		for _, test := range []struct {
			name string
			// frame is the function's; told: the argument is known; jumps: by a jump of the function of that name.
			frame string
			told  bool
			jumps bool
		}{
			{"kept", "kept", true, false}, {"handed", "handed", true, false}, {"jumped", "kept", true, true},
			{"gone", "gone", false, false}, {"either", "either", false, false}, {"changed", "changed", false, false},
		} {
			t.Run(compiler+"/"+test.name, func(t *testing.T) {
				in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{test.name}}))
				given, ok := in.Process.SymbolNamed("given")
				if !ok {
					t.Fatal("no symbol given")
				}
				want, frame := uint64(given.Addr)+24, frameOf(t, in, test.frame)
				v, told := staticscan.EnteredWith(in, frame, 0)
				if test.jumps {
					entry, _ := in.Process.SymbolNamed("jumped")
					v, told = staticscan.JumpedOnWith(in, frame, 0, entry.Addr)
				}
				if told != test.told || told && v != want {
					t.Errorf("argument %v (told: %v), want %v (told: %v)", evidence.Addr(v), told, evidence.Addr(want), test.told)
				}
			})
		}
	}
}

// frameOf is the index of the frame of a function.
func frameOf(t *testing.T, in staticscan.Input, name string) int {
	t.Helper()
	for i := range in.Frames {
		if s, ok := in.Process.SymbolAt(in.Frames[i].LookupPC()); ok && s.Name == name {
			return i
		}
	}
	t.Fatalf("no frame of %s", name)
	return 0
}
