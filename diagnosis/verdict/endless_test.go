package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// TestEndless: a recursion around a cycle of pointers names the store that closed the cycle. One that is only deep names none, and neither does one around
// pointers of different members, which lead back as they should.
func TestEndless(t *testing.T) {
	text := map[string]string{
		// Three calls lead around, by the parents of a tree.
		"parents": `
#include <stdio.h>
#include <stdlib.h>
struct folder { const char *name; struct folder *parent, *child, *sibling; };
static struct folder *make(const char *name, struct folder *parent)
{
	struct folder *f = calloc(1, sizeof *f);
	f->name = name;
	if (parent) {
		f->parent = parent;
		f->sibling = parent->child;
		parent->child = f;
	}
	return f;
}
__attribute__((noinline)) static void move(struct folder *f, struct folder *to)
{
	struct folder **p = &f->parent->child;
	while (*p != f)
		p = &(*p)->sibling;
	*p = f->sibling;
	f->parent = to; /* BUG */
	f->sibling = to->child;
	to->child = f;
}
__attribute__((noinline)) static int path(struct folder *f, char *out)
{
	char text[16];
	int n = f->parent ? path(f->parent, out) : 0;
	n += snprintf(text, sizeof text, "/%s", f->name);
	return n;
}
int main(void)
{
	char out[64];
	struct folder *root = make("", NULL), *usr = make("usr", root), *lib = make("lib", usr), *x = make("x", lib);
	printf("%d\n", path(x, out));
	move(usr, x);
	printf("%d\n", path(x, out));
	return 0;
}
`,
		// Two functions call each other for a term that was put into itself.
		"terms": `
#include <stdio.h>
#include <stdlib.h>
struct list { struct list *rest; struct term *first; };
struct term { long value; struct list *parts; };
static struct term *make(long value)
{
	struct term *t = calloc(1, sizeof *t);
	t->value = value;
	return t;
}
__attribute__((noinline)) static void put(struct term *t, struct term *part)
{
	struct list *l = malloc(sizeof *l);
	l->first = part;
	l->rest = NULL;
	t->parts = l;
}
static long sum(struct term *t);
__attribute__((noinline)) static long all(struct list *l)
{
	volatile long here = sum(l->first);
	return here + 1;
}
__attribute__((noinline)) static long sum(struct term *t)
{
	volatile long here = t->value;
	if (t->parts)
		here += all(t->parts);
	return here;
}
int main(void)
{
	struct term *a = make(1), *b = make(2), *c = make(3);
	put(a, b);
	put(b, c);
	printf("%ld\n", sum(a));
	put(c, a);
	printf("%ld\n", sum(b));
	return 0;
}
`,
		// A list is a ring from its start on, and the recursion does not look for its head.
		"ring": `
#include <stdio.h>
#include <stdlib.h>
struct link { struct link *next; long value; };
__attribute__((noinline)) static void put(struct link *head, long value)
{
	struct link *l = malloc(sizeof *l);
	l->value = value;
	l->next = head->next;
	head->next = l;
}
__attribute__((noinline)) static long sum(struct link *l)
{
	volatile long here = l->value;
	here += sum(l->next);
	return here;
}
int main(int argc, char **argv)
{
	struct link *head = calloc(1, sizeof *head);
	head->next = head;
	for (int i = 0; i < argc * 3; i++)
		put(head, i);
	printf("%ld\n", sum(head));
	return 0;
}
`,
		"deep": `
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
__attribute__((noinline)) static int last(struct node *n)
{
	volatile char text[512];
	text[n->value & 511] = (char)n->value;
	return n->next ? last(n->next) + text[n->value & 511] : n->value;
}
int main(void)
{
	static struct node nodes[40000];
	for (int i = 0; i < 39999; i++) {
		nodes[i].next = &nodes[i + 1];
		nodes[i].value = i;
	}
	printf("%d\n", last(nodes));
	return 0;
}
`,
	}
	for source := range text {
		var builds []build
		for _, b := range []build{{compiler: "gcc", level: "-O0"}, {compiler: "gcc", level: "-O2"}, {compiler: "clang", level: "-O1"}} {
			builds = append(builds, build{source + ".c", b.compiler, b.level})
		}
		eachBuild(t, builds, func(string) string { return text[source] }, "SIGSEGV", func(t *testing.T, _ string, d *evidence.Diagnosis) {
			switch source {
			case "deep", "ring":
				if len(d.Causes) > 0 {
					t.Errorf("a cause: %s", d.Causes[0].Summary)
				}
			case "terms":
				if len(d.Causes) > 0 || len(d.Leads) == 0 || d.Leads[0].Site == nil {
					t.Fatalf("causes %+v, leads %+v", d.Causes, d.Leads)
				}
				if at := d.Leads[0].Site.Function; at != "put" {
					t.Errorf("the lead is in %s: %s", at, d.Leads[0].Summary)
				}
			default:
				if len(d.Causes) == 0 || d.Causes[0].Site == nil {
					t.Fatalf("no cause: %+v", d)
				}
				if first := &d.Causes[0]; first.Site.Line != lineOf(text[source], "/* BUG */") {
					t.Errorf("the cause is at line %d: %s", first.Site.Line, first.Summary)
				}
			}
		})
	}
}
