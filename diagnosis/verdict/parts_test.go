package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// partsPrograms compare a number that is made of two others, of which the line that is marked CAUSE made one wrongly.
var partsPrograms = map[string]string{
	"layout.c": `#include <stdio.h>
#include <stdlib.h>
struct box { long left, right; };
static struct box boxes[4];
__attribute__((noinline)) static void place(struct box *b, long at, long width, int scale)
{
	b->left = at * scale;
	b->right = b->left + width; // CAUSE
}
__attribute__((noinline)) static void draw(const struct box *b, const struct box *next)
{
	long gap = next->left - b->right;
	if (gap < 0) {
		fprintf(stderr, "gap %ld\n", gap);
		abort();
	}
	printf("%ld\n", gap);
}
int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 4; i++)
		place(&boxes[i], i * 10 + argc, i == 2 ? 27 : 15, 2);
	for (int i = 0; i < 3; i++)
		draw(&boxes[i], &boxes[i + 1]);
	return 0;
}
`,
	// The library finds the number wrong, in code that is the program's only by its template.
	"track.cpp": `#include <cstdio>
#include <vector>
struct Region { std::size_t begin, end; };
static std::vector<Region> regions;
[[gnu::noinline]] static void plan(std::size_t begin, std::size_t frames)
{
	Region r;
	r.begin = begin;
	r.end = begin + frames * 2; // CAUSE
	regions.push_back(r);
}
[[gnu::noinline]] static void silence(std::vector<short> &out, std::size_t frames)
{
	out.insert(out.end(), frames, short(0));
}
int main(int argc, char **)
{
	std::vector<short> out;
	for (std::size_t i = 0; i < 5; i++)
		plan(i * 100 * argc, i == 3 ? 60 : 30);
	std::size_t cursor = 0;
	for (const Region &r : regions) {
		silence(out, r.begin - cursor);
		cursor = r.end;
	}
	std::printf("%zu\n", out.size());
}
`,
}

// Of a number that a check found wrong, and that was made of two others, it is told where these came from.
func TestPartsOfCompared(t *testing.T) {
	builds := []build{
		{"layout.c", "gcc", "-O0"}, {"layout.c", "gcc", "-O2"}, {"layout.c", "clang", "-O1"},
		{"track.cpp", "g++", "-O0"}, {"track.cpp", "g++", "-O2"}, {"track.cpp", "clang++", "-O1"},
	}
	eachBuild(t, builds, func(source string) string { return partsPrograms[source] }, "SIGABRT", func(t *testing.T, source string, d *evidence.Diagnosis) {
		for c := range d.Told() {
			for _, v := range c.Compared {
				if slices.ContainsFunc(v.Story, func(s evidence.CauseStep) bool { return s.Site != nil && isCause(partsPrograms[source], s.Site.Line) }) {
					return
				}
			}
		}
		for c := range d.Told() {
			t.Logf("%s; compared: %+v", c.Summary, c.Compared)
		}
		t.Error("the place that made a part of the number is not told")
	})
}
