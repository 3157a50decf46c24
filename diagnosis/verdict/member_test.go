package verdict_test

import (
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// memberPrograms access an array of a struct outside of its bounds and inside of the struct, or do so as they may. The cause is at one
// of the lines that are marked CAUSE.
var memberPrograms = map[string]string{
	// Text overwrites the pointer after it.
	"text.c": `#include <stdlib.h>
struct text { long length; char name[16]; char *volatile end; int used; };
__attribute__((noinline)) static void put(struct text *t, const char *s)
{
    for (int i = 0; s[i]; i++)
        t->name[i] = s[i]; // CAUSE
}
int main(int argc, char **argv)
{
    struct text *t = calloc(1, sizeof *t);
    t->end = t->name;
    put(t, argv[argc - 1]);
    return *t->end;
}
`,
	// What is read past the end is the offset of another access.
	"links.c": `#include <stdlib.h>
struct set { int count; int links[8]; int huge; int rest[4]; };
static char *text;
__attribute__((noinline)) static int follow(struct set *s, int from)
{
    return text[s->links[from]]; // CAUSE
}
int main(int argc, char **argv)
{
    struct set *s = calloc(1, sizeof *s);
    (void)argv;
    text = calloc(1, 16);
    s->huge = 0x7ffffff0;
    for (int i = 0; i < 8; i++)
        s->links[i] = i;
    return follow(s, argc + 6);
}
`,
	// The first element is put at the front, from a place past the end: the others move, and what is after them.
	"shift.c": `#include <stdlib.h>
#include <string.h>
struct list { int count; unsigned char order[16]; int start; int rest[4]; };
static char *text;
__attribute__((noinline)) static int front(struct list *l, int at)
{
    unsigned char c = l->order[at]; // CAUSE
    memmove(l->order + 1, l->order, at); // CAUSE
    l->order[0] = c;
    return c;
}
int main(int argc, char **argv)
{
    struct list *l = calloc(1, sizeof *l);
    (void)argv;
    text = calloc(1, 16);
    l->start = 0x7f0000;
    return front(l, argc + 17) + text[l->start];
}
`,
	// The element is one of the array's, and a bad value was stored in it.
	"stored.c": `#include <stdlib.h>
struct set { int count; int links[8]; int huge; int rest[4]; };
static char *text;
__attribute__((noinline)) static int follow(struct set *s, int from)
{
    int next = s->links[from];
    return text[next];
}
int main(int argc, char **argv)
{
    struct set *s = calloc(1, sizeof *s);
    (void)argv;
    text = calloc(1, 16);
    s->links[argc + 4] = 0x7ffffff0;
    return follow(s, argc + 4);
}
`,
	// The array has as many elements as there is room for.
	"room.c": `#include <stdlib.h>
struct row { int count; int other[2]; int cells[2]; };
static char *text;
__attribute__((noinline)) static int follow(struct row *r, int from)
{
    int next = r->cells[from];
    return text[next];
}
int main(int argc, char **argv)
{
    struct row *r = calloc(1, sizeof *r + 10 * sizeof(int));
    (void)argv;
    text = calloc(1, 16);
    r->cells[argc + 4] = 0x7ffffff0;
    return follow(r, argc + 4);
}
`,
}

// TestMembers: an access outside of an array of a struct is the cause, with other members overwritten or read in its place. What is told
// of programs that stay inside is another cause.
func TestMembers(t *testing.T) {
	crashtest.TracesAccesses(t)
	const words = " the end of "
	for name, x := range map[string]struct {
		arguments []string
		outside   bool
	}{
		"text.c": {[]string{"a name with many letters"}, true}, "links.c": {[]string{"a"}, true}, "shift.c": {[]string{"a"}, true},
		"stored.c": {[]string{"a"}, false}, "room.c": {[]string{"a"}, false},
	} {
		for _, compiler := range []string{"gcc", "clang"} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(name+level+compiler, func(t *testing.T) {
					result := diagnosed(t, crashtest.Program{Source: name, Text: memberPrograms[name], Compiler: compiler, Flags: []string{level}}, x.arguments, "SIGSEGV")
					causes := result.Diagnosis.Causes
					if !x.outside {
						for i := range causes {
							if strings.Contains(causes[i].Summary, words) {
								t.Errorf("%q", causes[i].Summary)
							}
						}
						return
					}
					lines := strings.Split(memberPrograms[name], "\n")
					if len(causes) == 0 {
						t.Fatalf("no cause is named: %+v", result.Diagnosis.Unknown)
					}
					c := &causes[0]
					site := c.Site
					if c.Outside != nil {
						site = c.Outside.Site // the headline begins there
					}
					if site == nil || site.Line > len(lines) || !strings.HasSuffix(lines[max(site.Line-1, 0)], "// CAUSE") || !c.Basis.Broken() {
						t.Errorf("%q (%s) at %+v", c.Summary, c.Basis, site)
					}
				})
			}
		}
	}
}
