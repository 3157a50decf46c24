package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// besidePrograms use a pointer that nothing was stored to. The line that is marked stored the bytes next to it.
var besidePrograms = map[string]string{"shelf.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct book { int pages; };
struct shelf { int count; struct book *books[8]; };
static struct shelf *half(const struct shelf *from)
{
	struct shelf *s = calloc(1, sizeof *s);
	s->count = from->count / 2;
	memcpy(s->books, from->books + s->count, (s->count - 1) * sizeof s->books[0]); // BESIDE
	return s;
}
__attribute__((noinline)) static int pages(const struct shelf *s)
{
	int sum = 0;
	for (int i = 0; i < s->count; i++)
		sum += s->books[i]->pages;
	return sum;
}
int main(int argc, char **argv)
{
	(void)argv;
	struct shelf all = { 8, {0} };
	for (int i = 0; i < 8; i++) {
		all.books[i] = malloc(sizeof(struct book));
		all.books[i]->pages = i * argc;
	}
	struct shelf *s = half(&all);
	printf("%d\n", pages(&all));
	printf("%d\n", pages(s));
	return 0;
}
`, "order.cpp": `#include <cstdio>
#include <cstring>
#include <vector>
struct Order {
	int number;
	long price;
	const char *name;
	Order *next;
	Order(int n, long p, const char *s) : number(n), price(p), name(s), next(nullptr) {}
	explicit Order(int n) : number(n), next(nullptr)
	{
		price = 7L * n; // BESIDE
	}
};
__attribute__((noinline)) static size_t width(const std::vector<Order *> &all)
{
	size_t most = 0;
	for (auto *o : all)
		if (o->name[0] != '-')
			most += o->name[0];
	return most;
}
int main()
{
	std::vector<Order *> all;
	for (int i = 0; i < 4; i++)
		all.push_back(i == 2 ? new Order(i) : new Order(i, 3, "pen"));
	std::printf("%zu\n", width(all));
}
`}

// TestBeside: of memory that nothing was stored to, the story tells which code stored the bytes next to it.
func TestBeside(t *testing.T) {
	t.Parallel()
	builds := []build{{"shelf.c", "gcc", "-O0"}, {"shelf.c", "clang", "-O2"}, {"order.cpp", "g++", "-O0"}, {"order.cpp", "clang++", "-O1"}}
	eachBuild(t, builds, func(name string) string { return besidePrograms[name] }, "SIGSEGV", func(t *testing.T, name string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause; leads %+v", d.Leads)
		}
		if c := d.Causes[0]; !slices.ContainsFunc(c.Story, func(s evidence.CauseStep) bool {
			return s.Site != nil && endsIn(besidePrograms[name], s.Site.Line, "// BESIDE")
		}) {
			t.Errorf("%s: %s; %+v", c.Kind, c.Summary, c.Story)
		}
	})
}
