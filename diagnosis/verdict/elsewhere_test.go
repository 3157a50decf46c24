package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// elsewhere are programs whose failing access is outside of an array. Where another function made the index of several values, that
// is where the way back ends; in share_twin.c the failing statement makes it.
var elsewhere = map[string]string{"share.c": `
#include <stdio.h>
struct vote { long given, spoiled; };
struct shelf { char books[1 << 20]; };
struct shelf shelves[64];
static long kept;
__attribute__((noinline)) static void count(const struct vote *v)
{
	kept = v->given - v->spoiled; // ENDS
}
__attribute__((noinline)) static int first(const struct shelf *s, long at) { return s[at].books[0]; }
int main(int argc, char **argv)
{
	struct vote v = { argc, argc + 90000 };
	(void)argv;
	count(&v);
	printf("%d\n", first(shelves, kept));
	return 0;
}
`, "share_twin.c": `
#include <stdio.h>
struct shelf { char books[1 << 20]; };
struct shelf shelves[64];
volatile long most = 90000, least = 7;
__attribute__((noinline)) static int first(const struct shelf *s, long given, long spoiled)
{
	return s[given - spoiled].books[0]; // ENDS
}
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", first(shelves, least, most + argc));
	return 0;
}
`, "mixed.cc": `
#include <cstdio>
struct page { char lines[1 << 20]; };
page pages[64];
static unsigned a = 70000, b = 3;
struct mixer {
	unsigned seed;
	__attribute__((noinline)) unsigned next() { return seed ^ (a * b); } // ENDS
};
__attribute__((noinline)) static int line(const page *p, unsigned at) { return p[at].lines[9]; }
int main(int argc, char **)
{
	if (argc > 3)
		a = b = 0;
	mixer m = { 1u << 20 };
	unsigned at = m.next();
	std::printf("%d\n", line(pages, at));
	return 0;
}
`}

// TestMadeElsewhere: neither the failing access nor a good address is called the cause of a bad index.
func TestMadeElsewhere(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"share.c", "gcc", "-O0"},
		{"share.c", "clang", "-O2"},
		{"share_twin.c", "gcc", "-O0"},
		{"share_twin.c", "clang", "-O2"},
		{"mixed.cc", "clang++", "-O0"},
		{"mixed.cc", "clang++", "-O2"},
	}, func(source string) string { return elsewhere[source] }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
		line := lineOf(elsewhere[source], "// ENDS")
		for _, c := range d.Causes {
			if c.Site == nil || c.Site.Line != line {
				t.Errorf("%q at %+v, want line %d", c.Summary, c.Site, line)
			}
		}
		if len(d.Causes)+len(d.Leads) == 0 {
			t.Error("nothing is told")
		}
	})
}
