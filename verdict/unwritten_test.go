package verdict_test

import (
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/internal/driver"
	"diagnose/internal/recordtest"
)

// That nothing ever stored to a global variable is said where it is so, and not where a
// system call or a store gave it the value that it has from the start.
func TestNeverStored(t *testing.T) {
	const text = `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct operations { const char *name; int (*open)(int), (*close)(int); };
static int one(int n) { return n + 1; }
static struct operations table = { "table", one, 0 };
__attribute__((noinline)) static int end(struct operations *o, int n)
{
	return o->close(n) + n;
}
int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "read") && read(0, &table.close, sizeof table.close) < 0)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "store"))
		*(int (*volatile *)(int))&table.close = 0;
	printf("%d\n", end(&table, table.open(argc)));
	return 0;
}
`
	for _, x := range []struct {
		compiler, level, argument string
		never                     bool
	}{
		{"gcc", "-O1", "", true}, {"clang", "-O0", "", true}, {"gcc", "-O2", "read", false}, {"gcc", "-O0", "store", false},
	} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "table.c", Text: text, Compiler: x.compiler, Flags: []string{x.level}})
		var args []string
		if x.argument != "" {
			args = []string{x.argument}
		}
		recorded := recordtest.RecordProgram(t, exe, args, strings.Repeat("\x00", 8), "SIGSEGV")
		result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
		if err != nil {
			t.Fatal(err)
		}
		summary := ""
		if causes := result.Diagnosis.Causes; len(causes) > 0 {
			summary = causes[0].Summary
		}
		if never := strings.HasPrefix(summary, "nothing ever stored to ") && strings.Contains(summary, "close: it is 0"); never != x.never {
			t.Errorf("%s %s %s: %q, want it to say never: %v; limits %v", x.compiler, x.level, x.argument, summary, x.never, result.Diagnosis.Coverage.Limits)
		}
	}
}
