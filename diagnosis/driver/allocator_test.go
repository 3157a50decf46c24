package driver_test

import (
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// The report of a Python program says that its objects come from malloc, if they do and the agent is
// there. Whatever is called python counts.
func TestReplacedAllocator(t *testing.T) {
	const text = "#include <stdlib.h>\nint main(void) { return !malloc(8) + *(volatile int *)0; }\n"
	for _, x := range []struct {
		name string
		env  []string
		want string
	}{
		{"python3.11", append(underAgent(t, ""), "PYTHONMALLOC=malloc"), "PYTHONMALLOC=malloc"},
		{"python3.11", append(underAgent(t, ""), "PYTHONMALLOC=pymalloc"), ""},
		{"python3.11", []string{"PYTHONMALLOC=malloc"}, ""},
		{"tool", append(underAgent(t, ""), "PYTHONMALLOC=malloc"), ""},
	} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "null.c", Text: text, Output: x.name})
		c, err := driver.Crash(t.Context(), driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Env: x.env})})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if l := evidence.LimitOf(c.Limits, evidence.LimitAllocator); l != nil {
			got = l.Names[0]
		}
		if got != x.want {
			t.Errorf("%s with %q: %q, want %q", x.name, x.env, got, x.want)
		}
	}
}
