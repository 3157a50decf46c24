package verdict_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
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

// A variable that nothing stored to has its initialiser, or is uninitialised if it has none.
// What is stored after it was read is a store, and a setting that decides an exit is no cause.
func TestStartValues(t *testing.T) {
	const text = `
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int n; };
static struct node *volatile none, *volatile late, *volatile marker = (struct node *)16;
static volatile int tls = 1;
__attribute__((noinline)) static struct node *make(void)
{
	return calloc(1, sizeof(struct node));
}
__attribute__((noinline)) static int first(int n)
{
	struct node *p = late;
	late = make();
	return p->n + n;
}
int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "late"))
		return first(argc);
	if (!strcmp(argv[1], "none"))
		return none->n;
	if (!strcmp(argv[1], "marker"))
		return marker->n;
	if (tls)
		exit(3);
	return 0;
}
`
	for _, x := range []struct {
		compiler, level, argument, expect string
		kind                              evidence.CauseKind
		says                              string
	}{
		{"gcc", "-O1", "late", "SIGSEGV", "", ""},
		{"clang", "-O2", "late", "SIGSEGV", "", ""},
		{"gcc", "-O2", "none", "SIGSEGV", evidence.CauseUninitialised, "nothing ever stored to none: it is 0 as it was when "},
		{"clang", "-O1", "marker", "SIGSEGV", evidence.CauseBadValue, "nothing ever stored to marker: it is 16, which is its initialiser; "},
		{"gcc", "-O1", "tls", "exit 3", "", ""},
	} {
		t.Run(x.argument+x.compiler, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "start.c", Text: text, Compiler: x.compiler, Flags: []string{x.level}})
			recorded := recordtest.RecordProgram(t, exe, []string{x.argument}, "", x.expect)
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{recorded.Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			causes := result.Diagnosis.Causes
			switch {
			case x.says != "" && (len(causes) == 0 || causes[0].Kind != x.kind || !strings.HasPrefix(causes[0].Summary, x.says)):
				t.Errorf("%+v, want %s, %q", causes, x.kind, x.says)
			case x.says == "":
				for _, c := range causes {
					if c.Kind == evidence.CauseUninitialised || strings.Contains(c.Summary, "nothing ever stored") {
						t.Errorf("%s: %q", c.Kind, c.Summary)
					}
				}
			}
		})
	}
}
