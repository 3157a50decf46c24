package crashtest

import (
	"testing"

	"diagnose/evidence"
)

func TestParseFixture(t *testing.T) {
	text := "// A bug.\n// FLAGS: -pthread -O1\n// ARGS: {dir}/x 3\n// VARIANTS: O2 clang-O2\nint f() {\n" +
		"  // WANT: null-pointer read:@LINE+1\n  return *p; }\n"
	f, err := parseFixture("/x/some_bug.c", text)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Want{Kind: evidence.NullPointer, Access: evidence.Read, Line: 7, LastLine: 7}); f.Want != want {
		t.Errorf("Want = %+v, want %+v", f.Want, want)
	}
	if f.Name != "some_bug" || f.Language() != "c" || len(f.flags) != 2 || len(f.AllVariants()) != 2 {
		t.Errorf("fixture = %+v", f)
	}
	if got := f.Arguments("/tmp/b/exe"); got[0] != "/tmp/b/x" || got[1] != "3" {
		t.Errorf("Arguments = %q", got)
	}
}

func TestParseFixtureErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no want":           "int main() {}\n",
		"two wants":         "// WANT: trap:@LINE+1\n// WANT: trap:@LINE+1\n",
		"unknown kind":      "// WANT: bad-luck:@LINE\n",
		"unknown access":    "// WANT: null-pointer touch:@LINE\n",
		"no line":           "// WANT: null-pointer read\n",
		"before the file":   "// WANT: trap:@LINE-1\n",
		"empty range":       "// WANT: trap:@LINE+3..+1\n",
		"unknown directive": "// FLAG: -O2\n// WANT: trap:@LINE+1\n",
		"unknown variant":   "// VARIANTS: O9\n// WANT: trap:@LINE+1\n",
	} {
		if f, err := parseFixture("x.c", text); err == nil {
			t.Errorf("%s: no error, but %+v", name, f)
		}
	}
}
