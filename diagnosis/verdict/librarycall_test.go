package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// TestFailedInLibrary: the program fails in a function that the recording library has its own way into (printf, puts), so that a trace ends at the call. What
// was handed over there is followed.
func TestFailedInLibrary(t *testing.T) {
	const head = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
`
	for name, program := range map[string]struct {
		text string
		kind evidence.CauseKind
	}{
		// The object before the address is not the one that was meant.
		"before the start": {head + `
struct machine { long stack[32]; const char **names; unsigned char *code; };
__attribute__((noinline)) void run(struct machine *m)
{
	for (int pc = 0; m->code[pc]; pc++) {
		signed char k = (signed char)m->code[pc];
		puts(m->names[k]); /* BUG */
	}
}
int main(void)
{
	static unsigned char code[] = { 7, 200, 0 };
	struct machine *m = calloc(1, sizeof *m);
	m->names = calloc(256, sizeof *m->names);
	for (int i = 0; i < 256; i++)
		m->names[i] = "a name";
	m->code = code;
	run(m);
	return 0;
}
`, evidence.CauseHeapUnderflow},
		"element without a value": {head + `
struct user { long id; char *name; };
struct user *users;
__attribute__((noinline)) int index_of(int argc) { return argc * 40; }
__attribute__((noinline)) void show(int at)
{
	puts(users[at].name); /* BUG */
}
int main(int argc, char **argv)
{
	users = malloc(64 * sizeof *users);
	for (int i = 0; i < 20; i++)
		users[i] = (struct user){ i, "somebody" };
	show(3);
	show(index_of(argc));
	return 0;
}
`, evidence.CauseUninitialised},
		// malloc's result was good.
		"spoiled": {head + `
struct value { int tag; union { long number; char *text; } u; };
static struct value stack[16];
static int top;
__attribute__((noinline)) void push_number(long n) { stack[top++] = (struct value){ 0, { .number = n } }; }
__attribute__((noinline)) void push_text(const char *s) { stack[top++] = (struct value){ 1, { .text = strdup(s) } }; }
__attribute__((noinline)) void negate(void)
{
	struct value *v = &stack[top - 1];
	v->u.number = -v->u.number; /* BUG */
}
__attribute__((noinline)) void show(struct value *v)
{
	if (v->tag)
		puts(v->u.text);
}
int main(void)
{
	push_number(5);
	negate();
	push_text("hello");
	negate();
	while (top > 0)
		show(&stack[--top]);
	return 0;
}
`, evidence.CauseBadValue},
	} {
		line := lineOf(program.text, "/* BUG */")
		for _, flags := range [][]string{{"-O0"}, {"-O2"}} {
			for _, compiler := range []string{"gcc", "clang"} {
				t.Run(name+" "+compiler+flags[0], func(t *testing.T) {
					result := diagnosed(t, crashtest.Program{Source: "handed.c", Text: program.text, Compiler: compiler, Flags: append(flags, "-g", "-w")}, nil, "SIGSEGV")
					if len(result.Diagnosis.Causes) == 0 {
						t.Fatalf("no cause; excluded: %v", result.Diagnosis.Excluded)
					}
					c := &result.Diagnosis.Causes[0]
					if c.Kind != program.kind || c.Site == nil || c.Site.Line != line {
						t.Errorf("%s (%s)", c.Summary, c.Kind)
					}
				})
			}
		}
	}
}
