package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// tested are programs whose assertions fail by a value that was copied over an equal one on its way, so that the last store that
// can be read off the failing function is another one than the value's.
var tested = map[string]string{"given.c": `
#include <assert.h>
#include <stdio.h>
struct key { int number; const char *name; };
static struct key keys[] = { { 3, "three" }, { 5, "five" } };
int wanted = 4;
__attribute__((noinline)) static const struct key *find(int number)
{
	for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (keys[i].number == number)
			return &keys[i];
	return NULL; // CAUSE
}
__attribute__((noinline)) static void give(const struct key **to, const struct key *const *from)
{
	*to = *from;
}
int main(void)
{
	const struct key *found = find(wanted), *given = 0;

	give(&given, &found);
	puts("begins");
	assert(given && given->number < 9);
	return 0;
}
`, "cleared.cc": `
#include <cassert>
#include <cstdio>
#include <map>
struct room { int number; };
struct guest { room *in; int open; };
static room first = { 2 };
__attribute__((noinline)) static void leave(guest *g)
{
	if (g->open > 0)
		g->in = nullptr; // CAUSE
}
int main()
{
	guest *g = new guest{ &first, 1 };
	leave(g);
	std::map<int, room *> rooms;
	rooms[4] = 0;
	rooms[7] = g->in;
	std::puts("begins");
	room *now = rooms[7];
	assert(now && now->number < 9);
	delete g;
	return 0;
}
`}

// TestTested: a trace tells which store the value had that an assertion compared.
func TestTested(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"given.c", "gcc", "-O0"},
		{"given.c", "clang", "-O0"},
		{"cleared.cc", "g++", "-O0"},
		{"cleared.cc", "clang++", "-O2"},
	}, func(source string) string { return tested[source] }, "SIGABRT", func(t *testing.T, source string, d *evidence.Diagnosis) {
		line := lineOf(tested[source], "// CAUSE")
		if len(d.Causes) == 0 || d.Causes[0].Site == nil || d.Causes[0].Site.Line != line {
			t.Errorf("causes %+v\nleads %+v, want line %d", d.Causes, d.Leads, line)
		}
	})
}
