package driver_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// The return statement of main that ran is named, though main has no frame any more.
func TestMainReturned(t *testing.T) {
	const text = `
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++)
		if (argc > 3 + i)
			return 4;
	if (argc == 1) {
		puts("one");
		return 4;
	}
	puts("many");
	return 4;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "returns.c", Text: text, Flags: []string{"-g", "-O0"}})
	for arguments, want := range map[string]int{"": 10, "a": 13, "a b c d": 7} {
		dir := recordtest.RecordProgram(t, exe, strings.Fields(arguments), "", "exit 4").Dir
		c, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		f := &c.Failure
		if f.Site == nil || f.Site.Function != "main" || f.Site.Line != want || f.SiteProof != evidence.Inferred {
			t.Errorf("with %q: %+v, %q, want line %d", arguments, f.Site, f.SiteProof, want)
		}
	}
}
