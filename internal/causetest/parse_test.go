package causetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

const sample = `// What it is about.
// CAUSE kind=order-violation|atomicity-violation variable="a[*].b,c|malloc at @OBJECT*" pattern="RW|two variables" missing=lock
// FAILS exit=3 says="it is late"
// RUNS fail: 1 {file}
// RUNS pass: 2
// INPUT: both
// INPUT fail: of one
// FLAGS: -lm -O1
// LEVELS: O2
// SHORT: O2
int main(void)
{
	int a = 1; // BUG 2
	a++; // BUG 1
	a--; // HOP 1 2
	return a; // OBJECT
	f(a); // BUG
}
`

func read(t *testing.T, text string) (*Case, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.c")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestRead(t *testing.T) {
	c, err := read(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	if c.Kind != evidence.CauseOrder || !c.IsKind(evidence.CauseAtomicity) || c.IsKind(evidence.CauseDeadlock) {
		t.Errorf("kinds %q", c.kinds)
	}
	if c.Pattern != evidence.PatternRW || !c.IsPattern(evidence.PatternPair) || c.IsPattern(evidence.PatternWR) || c.IsPattern("") {
		t.Errorf("patterns %q", c.patterns)
	}
	if c.Missing != "lock" || c.Level != "O2" || c.ends != (ending{"exit 3", "it is late"}) || !slices.Equal(c.flags, []string{"-lm", "-O1"}) {
		t.Errorf("lock %q, level %q, ending %q, flags %q", c.Missing, c.Level, c.ends, c.flags)
	}
	if c.Line != 17 || !slices.Equal(c.Accesses, []int{14, 13}) || !slices.Equal(c.Hops, []int{15, 15}) || c.ObjectLine != 16 {
		t.Errorf("line %d, accesses %d, hops %d, object %d", c.Line, c.Accesses, c.Hops, c.ObjectLine)
	}
	if !slices.Equal(c.inputs[failing], []string{"both", "of one"}) || !slices.Equal(c.inputs[passing], []string{"both"}) || !slices.Equal(c.runs[failing], []string{"1 {file}"}) {
		t.Errorf("inputs %q, runs %q", c.inputs, c.runs)
	}
	for names, want := range map[string]bool{"a[3].b,c": true, "c,a[3].b": true, "a[3].b": false, "a[3].bb,c": false, "malloc at some.c:16 #3 +0x10": true, "malloc at some.c:15": false} {
		if c.IsVariable(strings.Split(names, ",")...) != want {
			t.Errorf("IsVariable(%s) = %v", names, !want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for what, change := range map[string][2]string{
		"kind":         {"order-violation", "disorder"},
		"pattern":      {"RW|", "RX|"},
		"level":        {"LEVELS: O2", "LEVELS: O9"},
		"short level":  {"SHORT: O2", "SHORT: O0"},
		"key":          {"missing=", "lacking="},
		"two marks":    {"// BUG 1\n", "// BUG 2\n"},
		"third mark":   {"// BUG 1\n", "// BUG 3\n"},
		"two BUGs":     {"// OBJECT", "// BUG"},
		"no end":       {`// FAILS exit=3 says="it is late"`, ""},
		"no words":     {` says="it is late"`, ""},
		"no run":       {"// RUNS pass: 2", ""},
		"FLAGS of one": {"FLAGS:", "FLAGS fail:"},
		"accesses":     {"a++; // BUG 1\n\ta--;", "a++;\n\ta--; // BUG 1 3 4\n"},
	} {
		text := strings.Replace(sample, change[0], change[1], 1)
		if text == sample {
			t.Fatalf("%s: nothing was changed", what)
		}
		if c, err := read(t, text); err == nil {
			t.Errorf("%s: read as %+v", what, c)
		}
	}
}

// The short matrix has the levels that a source wants in it, and the full one all.
func TestShortMatrix(t *testing.T) {
	c, err := read(t, strings.Replace(sample, "LEVELS: O2", "LEVELS: O0 O2", 1))
	if err != nil {
		t.Fatal(err)
	}
	for full, want := range map[string]string{"": "some-O2", "full": "some-O0 some-O2"} {
		t.Setenv("DIAGNOSE_MATRIX", full)
		var got []string
		for _, other := range c.inMatrix() {
			got = append(got, other.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with DIAGNOSE_MATRIX=%q: %v, want %s", full, got, want)
		}
	}
}
