package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// TestLedOutside: the story of an access outside of an array or an object begins where its index was made, or where the size of the object lost a part,
// whether the report rests on a search or on a trace.
func TestLedOutside(t *testing.T) {
	text := map[string]string{
		// The index of a call through a table came from an object on the heap.
		"opcode": `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int (*operation)(int);
static int twice(int n) { return 2 * n; }
static int less(int n) { return n - 1; }
static operation table[] = { twice, less, twice };
static const char *names[] = { "twice", "less", "again", "jump" };
struct instruction { int code, argument; };
__attribute__((noinline)) static void parse(struct instruction *in, const char *name)
{
	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			in->code = i; /* MADE */
}
__attribute__((noinline)) static int run(struct instruction *in, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += table[in[i].code](in[i].argument); /* BUG */
	return sum;
}
int main(void)
{
	struct instruction *in = calloc(8, sizeof *in);
	parse(in, "twice");
	parse(in + 1, "less");
	printf("%d\n", run(in, 2));
	parse(in + 1, "jump");
	printf("%d\n", run(in, 2));
	return 0;
}
`,
		// What several values were added to is the index.
		"total": `
#include <stdio.h>
#include <stdlib.h>
struct line { char text[40]; int used; struct line *next; };
__attribute__((noinline)) static void add(struct line *l, const char *name, int value)
{
	l->used += snprintf(l->text + l->used, sizeof l->text - l->used, "%s=%d;", name, value); /* MADE */
}
__attribute__((noinline)) static void end(struct line *l)
{
	l->text[l->used] = 0; /* BUG */
	l->used = 0;
}
int main(void)
{
	static const char *names[] = { "width", "height", "depth-of-field", "colour-space" };
	struct line *l = calloc(1, sizeof *l);
	for (int i = 0; i < 4; i++)
		add(l, names[i], i * 1000);
	end(l);
	puts(l->text);
	return 0;
}
`,
		// The size of the object is what is wrong, and not what is written.
		"size": `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct picture { unsigned width, height; char *pixels; };
__attribute__((noinline)) static struct picture *make(unsigned width, unsigned height)
{
	struct picture *p = malloc(sizeof *p);
	p->width = width;
	p->height = height;
	unsigned short size = width * height; p->pixels = malloc(size); /* MADE */
	return p;
}
__attribute__((noinline)) static void fill(struct picture *p, int value)
{
	for (unsigned y = 0; y < p->height; y++)
		memset(p->pixels + y * p->width, value, p->width); /* BUG */
}
int main(int argc, char **argv)
{
	for (unsigned n = 64; n < 300; n += argc * 192)
		fill(make(n + 4, n - 3), 'x');
	return 0;
}
`,
	}
	ends := map[string]string{"opcode": "SIGSEGV", "total": "SIGABRT", "size": "SIGABRT"}
	for source := range text {
		var builds []build
		for _, b := range []build{{compiler: "gcc", level: "-O0"}, {compiler: "gcc", level: "-O2"}, {compiler: "clang", level: "-O1"}, {compiler: "clang", level: "-O0"}} {
			if source != "opcode" || b.level != "-O0" { // with pages in place of watchpoints, a search on the stack takes a minute
				builds = append(builds, build{source + ".c", b.compiler, b.level})
			}
		}
		eachBuild(t, builds, func(string) string { return text[source] }, ends[source], func(t *testing.T, _ string, d *evidence.Diagnosis) {
			if len(d.Causes) == 0 || d.Causes[0].Site == nil {
				t.Fatalf("no cause: %+v", d)
			}
			first, bug, made := &d.Causes[0], lineOf(text[source], "/* BUG */"), lineOf(text[source], "/* MADE */")
			if at := first.Site.Line; at != bug && (at < made-3 || at > made) {
				t.Errorf("the cause is at line %d, and not at %d: %s", at, bug, first.Summary)
			}
			if !tells(first, made) {
				t.Errorf("the story of %q does not have line %d: %+v", first.Summary, made, first.Story)
			}
		})
	}
}
