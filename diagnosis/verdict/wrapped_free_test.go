package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// TestWrappedFree: a function around free that jumps on to it leaves no frame. It is passed over, and the cause is where it was called. One
// that frees objects of one type is the program's own deed.
func TestWrappedFree(t *testing.T) {
	const wrapper = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void give_back(void *p)
{
	if (p)
		free(p);
}
`
	const bare = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct names { struct names *next; char *text; };
__attribute__((noinline)) void drop(struct names *n)
{
	if (n)
		free(n); /* BUG */
}
`
	for name, program := range map[string]struct{ text, function string }{
		"freed twice": {wrapper + `
struct block { struct block *next; long room[40]; } *head, *tail;
static void add(void) { struct block *b = calloc(1, sizeof *b); b->next = head; head = b; if (!tail) tail = b; }
__attribute__((noinline)) void clean(void)
{
	struct block *next, *b;
	give_back(tail); /* BUG */
	for (b = head; b; b = next) {
		next = b->next;
		give_back(b);
	}
}
int main(void) { add(); add(); clean(); puts("done"); return 0; }
`, "clean"},
		"read after": {wrapper + `
struct user { char *name; long id; };
__attribute__((noinline)) void rename_user(struct user *u, const char *to)
{
	char *old = u->name;
	give_back(old); /* BUG */
	if (strcmp(to, "root"))
		u->name = strdup(to);
}
int main(int argc, char **argv)
{
	struct user u = { strdup("someone"), 7 };
	rename_user(&u, argv[argc > 5 ? 1 : 0] ? "root" : "x");
	if (u.name[0] != 's')
		abort();
	return 0;
}
`, "rename_user"},
		"of one type": {bare + `
int main(void)
{
	struct names *n = calloc(1, sizeof *n);
	drop(n);
	drop(n);
	puts("done");
	return 0;
}
`, "drop"},
	} {
		line := lineOf(program.text, "/* BUG */")
		for _, flags := range [][]string{{"-O0"}, {"-O2"}} {
			for _, compiler := range []string{"gcc", "clang"} {
				t.Run(name+" "+compiler+flags[0], func(t *testing.T) {
					result := diagnosed(t, crashtest.Program{Source: "wrapped.c", Text: program.text, Compiler: compiler, Flags: append(flags, "-g")}, nil, "SIGABRT")
					if len(result.Diagnosis.Causes) == 0 {
						t.Fatalf("no cause; excluded: %v", result.Diagnosis.Excluded)
					}
					c := &result.Diagnosis.Causes[0]
					if c.Kind != evidence.CauseDoubleFree && c.Kind != evidence.CauseUseAfterFree || c.Site == nil || c.Site.Function != program.function || c.Site.Line != line {
						t.Errorf("%s (%s)", c.Summary, c.Kind)
					}
				})
			}
		}
	}
}
