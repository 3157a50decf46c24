package verdict_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// folded are programs whose bad value the compiler computes in optimised code. There the run shows where the value was put, and
// nothing of what it was made of: a lead. In the twins the value is in the source where it is put.
var folded = map[string]string{"share.c": `
#include <stdio.h>
struct seats { unsigned votes, spoiled, share; };
char shelves[64][1 << 20];
static struct { long pad; unsigned at; } volatile order;
static void count(struct seats *s, unsigned votes, unsigned spoiled)
{
	s->votes = votes;
	s->spoiled = spoiled;
	s->share = (votes - spoiled) >> 20;
}
__attribute__((noinline)) static int first(unsigned at) { return shelves[at][0]; }
int main(void)
{
	struct seats s;
	count(&s, 9, 12);
	order.at = s.share; // LEAD
	return first(order.at);
}
`, "share_twin.c": `
#include <stdio.h>
char shelves[64][1 << 20];
static struct { long pad; unsigned at; } volatile order;
__attribute__((noinline)) static int first(unsigned at) { return shelves[at][0]; }
int main(void)
{
	order.at = 4095; // CAUSE
	return first(order.at);
}
`, "list.c": `
#include <stdio.h>
#include <string.h>
struct part { long pad, divisor; };
static struct part volatile parts[4];
__attribute__((noinline)) static void put(const struct part *from, int n)
{
	for (int i = 0; i < n; i++)
		parts[i].divisor = from[i].divisor;
}
__attribute__((noinline)) static long share(long of, int i) { return of / parts[i].divisor; }
int main(int argc, char **argv)
{
	struct part list[4] = { { 1, 5 }, { 2, 7 } }; // CAUSE
	(void)argv;
	put(list, argc + 3);
	printf("%ld\n", share(100, argc + 1));
	return 0;
}
`, "desk.cc": `
#include <cstdio>
struct clerk { int age, room; };
struct desk { clerk *by; bool open; };
static clerk *volatile chosen;
static clerk someone = { 40, 2 };
static void tidy(desk *d)
{
	if (d->open)
		d->by = nullptr;
}
__attribute__((noinline)) static int room(const clerk *c) { return c->room; }
int main()
{
	desk d = { &someone, true };
	tidy(&d);
	chosen = d.by; // LEAD
	std::printf("%d\n", room(chosen));
	return 0;
}
`, "desk_twin.cc": `
#include <cstdio>
struct clerk { int age, room; };
static clerk *volatile chosen;
static clerk someone = { 40, 2 };
__attribute__((noinline)) static int room(const clerk *c) { return c->room; }
int main(int argc, char **)
{
	chosen = &someone;
	if (argc < 3)
		chosen = nullptr; // CAUSE
	std::printf("%d\n", room(chosen));
	return 0;
}
`}

// TestFolded: where the compiler computed a value, the place that has it is no cause.
func TestFolded(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, x := range []struct {
		source, compiler, level string
		lead                    bool
	}{
		{"share.c", "gcc", "-O2", true},
		{"share.c", "clang", "-O1", true},
		{"share_twin.c", "gcc", "-O2", false},
		{"share_twin.c", "clang", "-O0", false},
		{"list.c", "gcc", "-O1", false},
		{"list.c", "clang", "-O0", false},
		{"desk.cc", "clang++", "-O2", true},
		{"desk.cc", "g++", "-O3", true},
		{"desk_twin.cc", "clang++", "-O2", false},
		{"desk_twin.cc", "g++", "-O1", false},
	} {
		t.Run(strings.Join([]string{x.source, x.compiler, x.level}, " "), func(t *testing.T) {
			text := folded[x.source]
			signal := "SIGSEGV"
			if x.source == "list.c" {
				signal = "SIGFPE"
			}
			d := diagnosed(t, crashtest.Program{Source: x.source, Text: text, Compiler: x.compiler, Flags: []string{x.level}}, nil, signal).Diagnosis
			list, marked := d.Causes, "// CAUSE"
			if x.lead {
				list, marked = d.Leads, "// LEAD"
			}
			line := lineOf(text, marked)
			switch {
			case x.lead && (len(d.Causes) > 0 || len(d.Leads) == 0 || d.Leads[0].Open != evidence.OpenFolded):
				t.Errorf("causes %+v\nleads %+v", d.Causes, d.Leads)
			case !x.lead && len(d.Causes) == 0:
				t.Errorf("no cause; leads %+v", d.Leads)
			case list[0].Site == nil || list[0].Site.Line != line:
				t.Errorf("%q at %+v, want line %d", list[0].Summary, list[0].Site, line)
			}
		})
	}
}
