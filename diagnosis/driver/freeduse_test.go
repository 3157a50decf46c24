package driver_test

import (
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// freedUse is a program whose failure is no memory fault. With BUG it used a freed object. Without
// BUG it fails in the same place for another reason, and has pointers to freed objects that it does
// not follow.
type freedUse struct {
	name, source, text string
	kind               evidence.FailureKind
	want               []string // parts of the finding's summary
	lost               string   // a compiler whose code leaves no trace of the use
}

var freedUses = []freedUse{
	// The access is in the failing function, through a pointer that came from
	// a table and is dead at the failure.
	{name: "abort", source: "table.c", text: `
#include <stdio.h>
#include <stdlib.h>
struct entry { long id; unsigned long used, limit; };
static struct entry *table[4];
__attribute__((noinline)) static void reserve(struct entry *e, unsigned long n)
{
	if (n > 1 && e->used + n > e->limit * 2) {
		fputs("full\n", stderr);
		abort();
	}
	e->used += n;
}
__attribute__((noinline)) static void drop(int i)
{
	free(table[i]);
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 4; i++) {
		table[i] = malloc(sizeof *table[i]);
		*table[i] = (struct entry){ i, 1, 10 };
	}
	int i = 2;
	struct entry *kept = table[i];
#ifdef BUG
	drop(i);
#else
	drop(1);
	kept = table[1];
	table[2]->used = 1000;
#endif
	reserve(table[2], argc + 20);
	return kept == (void *)argv;
}
`, kind: evidence.Abort, want: []string{"use after free: ", " has read ", " bytes into a freed 24-byte object"}},
	// The access was in a function that has returned; the value it read is still in a variable.
	{lost: "clang", name: "assertion", source: "queue.c", text: `
#include <assert.h>
#include <stdlib.h>
struct queue { void *items; unsigned long length; };
__attribute__((noinline)) static unsigned long length(const struct queue *q)
{
	return q->length;
}
__attribute__((noinline)) static void check(unsigned long n, struct queue *q)
{
	assert(n < 100);
	if (n == 1)
		q->items = 0;
}
int main(int argc, char **argv)
{
	struct queue *q = malloc(sizeof *q), *old = q;
	q->items = argv;
	q->length = 3 + argc;
	unsigned long n = q->length + 200;
	free(q);
#ifdef BUG
	n = length(old);
#endif
	check(n, old);
	return 0;
}
`, kind: evidence.AssertionFailure, want: []string{"use after free: ", " a freed 16-byte object"}},
	{name: "exception", source: "at.cc", text: `
#include <vector>
#include <cstdlib>
struct cursor { std::size_t index; cursor *next; };
__attribute__((noinline)) static int pick(const std::vector<int> &v, const cursor *c)
{
	return v.at(c->index);
}
int main(int argc, char **)
{
	std::vector<int> v(4);
	cursor *c = new cursor{1, nullptr}, *other = new cursor{std::size_t(argc) + 50, nullptr};
#ifdef BUG
	delete other;
#else
	delete c;
#endif
	return pick(v, other) + (c == other);
}
`, kind: evidence.CxxTerminate, want: []string{"use after free: ", " a freed 16-byte object"}},
	{name: "division", source: "mask.c", text: `
#include <stdlib.h>
struct hash { unsigned long mask, count; };
__attribute__((noinline)) static long spread(struct hash *h, long n)
{
	return n / (long)(h->mask & 15);
}
__attribute__((noinline)) static void destroy(struct hash *h)
{
	h->mask = 0;
	free(h);
}
int main(int argc, char **argv)
{
	struct hash *h = malloc(sizeof *h), *g = malloc(sizeof *g);
	h->mask = g->mask = 16 * argc;
	(void)argv;
#ifdef BUG
	destroy(h);
#else
	destroy(g);
#endif
	return (int)spread(h, 100 + argc) + (g == h);
}
`, kind: evidence.DivisionByZero, want: []string{"use after free: ", " has read h->mask, which is the start of a freed 16-byte object"}},
	// An object that the failing function freed itself, after it had read it, is no use after free.
	// Nor is an access in a loop to an object that the next round frees.
	{name: "freed here", source: "destroy.c", text: `
#include <stdio.h>
#include <stdlib.h>
struct rec { long id; struct rec *next; };
static long total;
__attribute__((noinline)) static void destroy(struct rec *list, long limit)
{
	while (list) {
		struct rec *r = list;
#ifdef BUG
		long id = r->id;
		free(r);
		list = r->next;
		total += id;
#else
		list = r->next;
		total += r->id;
		free(r);
#endif
		if (total > limit) {
			fputs("too much\n", stderr);
			abort();
		}
	}
}
int main(int argc, char **argv)
{
	struct rec *a = malloc(sizeof *a), *b = malloc(sizeof *b), *spare = malloc(sizeof *spare);
	*a = (struct rec){ 40 + argc, b };
	*b = (struct rec){ 40 + argc, 0 };
	spare->id = 1;
	free(spare);
	destroy(a, argc + 20);
	return spare == (void *)argv;
}
`, kind: evidence.Abort, want: []string{"use after free: "}},
}

// TestFreedUse: whatever the failure is, the use of a freed object by the failing code is a
// finding. A pointer to one that is not followed is none.
func TestFreedUse(t *testing.T) {
	for _, u := range freedUses {
		for _, build := range [][]string{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O1"}} {
			for _, bug := range []bool{true, false} {
				if bug && u.lost == build[0] {
					continue
				}
				name := u.name + strings.Join(build, "") + map[bool]string{true: "", false: "/twin"}[bug]
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					compiler := build[0]
					if strings.HasSuffix(u.source, ".cc") {
						compiler = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
					}
					flags := []string{build[1], "-w"}
					if bug {
						flags = append(flags, "-DBUG")
					}
					exe := crashtest.Compile(t, crashtest.Program{Source: u.source, Text: u.text, Compiler: compiler, Flags: flags})
					c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Env: underAgent(t, "")})})
					checkFreedUse(t, &u, bug, c)
				})
			}
		}
	}
}

func checkFreedUse(t *testing.T, u *freedUse, bug bool, c *evidence.Case) {
	t.Helper()
	if c.Failure.Kind != u.kind {
		t.Fatalf("the failure is %s: %s", c.Failure.Kind, c.Failure.Sentence)
	}
	var uses []evidence.Finding
	for _, f := range c.Findings {
		if f.Kind == evidence.FindingUseAfterFree {
			uses = append(uses, f)
		}
	}
	if !bug {
		if len(uses) != 0 {
			t.Errorf("%q of a program that uses no freed memory", uses[0].Summary)
		}
		return
	}
	for _, f := range uses {
		whole := f.Object != nil && f.Object.Freed != nil && f.Object.Allocated != nil
		for _, part := range u.want {
			whole = whole && strings.Contains(f.Summary, part)
		}
		if whole {
			return
		}
	}
	t.Errorf("no finding has %q: %+v", u.want, uses)
}
