package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// printed are programs in which a bad number is printed into a text and read from it again.
var printed = map[string]string{"message.c": `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char shelves[64][1 << 20];
struct order { int books[4]; int shelf; };
static struct order order = { { 1, 2, 3, 4 }, 7 };
static char message[40];
int given = 5;
__attribute__((noinline)) static void fill(struct order *o)
{
	for (int i = 0; i < given; i++)
		o->books[i] = 5000 + i; // BUG
}
__attribute__((noinline)) static void ask(const struct order *o)
{
	snprintf(message, sizeof message, "shelf=%d", o->shelf);
}
int main(void)
{
	fill(&order);
	ask(&order);
	int at = atoi(strchr(message, '=') + 1);
	printf("%d\n", shelves[at][0]);
	return 0;
}
`, "words.cc": `
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
struct room { char lines[1 << 20]; };
room rooms[64];
static unsigned doors = 3;
__attribute__((noinline)) static char *words(const char *format, ...)
{
	char *text;
	va_list list;
	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		abort();
	va_end(list);
	return text;
}
__attribute__((noinline)) static void close(unsigned n) { doors -= n; } // BUG
int main()
{
	close(4);
	char *text = words("%u", doors);
	std::string kept(text);
	std::free(text);
	std::printf("%d\n", rooms[std::strtoul(kept.c_str(), nullptr, 10)].lines[9]);
}
`}

// TestPrinted: the call that prints a bad number is not its cause.
func TestPrinted(t *testing.T) {
	crashtest.TracesAccesses(t)
	eachBuild(t, []build{
		{"message.c", "gcc", "-O0"},
		{"message.c", "clang", "-O1"},
		{"words.cc", "g++", "-O2"},
		{"words.cc", "clang++", "-O0"},
	}, func(source string) string { return printed[source] }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
		text := printed[source]
		for _, c := range d.Causes {
			if c.Site == nil || c.Site.Line != lineOf(text, "// BUG") {
				t.Errorf("%s: %q at %+v", c.Proof, c.Summary, c.Site)
			}
		}
		if len(d.Causes)+len(d.Leads) == 0 {
			t.Error("the value was not followed")
		}
	})
}
