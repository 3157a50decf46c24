package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// declaredPrograms use a null pointer at the line that is marked.
var declaredPrograms = map[string]string{
	// What was sought is the first of its list, so that none is before it.
	"front.c": `#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int key; };
static struct node *table[4];
__attribute__((noinline)) static struct node *find(int key)
{
	struct node *p = table[key & 3];
	struct node *before = NULL;
	while (p) {
		if (p->key == key) {
			before->next = p->next; // CAUSE
			p->next = table[key & 3];
			table[key & 3] = p;
			return p;
		}
		before = p;
		p = p->next;
	}
	return NULL;
}
int main(void)
{
	for (int i = 0; i < 12; i++) {
		struct node *n = malloc(sizeof *n);
		n->key = i;
		n->next = table[i & 3];
		table[i & 3] = n;
	}
	printf("%d\n", find(2)->key);
	printf("%d\n", find(2)->key);
	return 0;
}
`,
	// None of them is better than the limit.
	"best.cpp": `#include <cstdio>
#include <vector>
struct Offer { int price, rating; };
__attribute__((noinline)) static int choose(const std::vector<Offer> &all, int limit)
{
	const Offer *best = nullptr;
	for (const Offer &o : all)
		if (o.price < limit && (!best || o.rating > best->rating))
			best = &o;
	return best->rating; // CAUSE
}
int main(int argc, char **)
{
	std::vector<Offer> all{{40, 3}, {50, 9}, {60, 7}};
	std::printf("%d\n", choose(all, 100));
	std::printf("%d\n", choose(all, 30 + argc));
	return 0;
}
`,
	// The pointer had a good value, and lost it too early.
	"early.c": `#include <stdio.h>
#include <stdlib.h>
struct job { int id, size; };
static struct job *last;
__attribute__((noinline)) static int run(struct job *given)
{
	struct job *j = given;
	int size = j->size;
	if (size > 2) {
		last = j;
		j = NULL; // CAUSE
	}
	printf("%d\n", size);
	return j->id;
}
int main(void)
{
	struct job a = {1, 2}, b = {2, 3};
	return run(&a) + run(&b);
}
`,
}

// TestDeclaredNull: of a variable that is null since its declaration the use is named; what a later statement made null, that statement.
func TestDeclaredNull(t *testing.T) {
	text := func(source string) string { return declaredPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 || d.Causes[0].Site == nil || !isCause(text(source), d.Causes[0].Site.Line) {
			t.Errorf("causes %+v, unknown %+v", d.Causes, d.Unknown)
		}
	}
	eachBuild(t, []build{{"front.c", "gcc", "-O2"}, {"front.c", "gcc", "-O1"}, {"best.cpp", "g++", "-O1"}}, text, "SIGSEGV", check)
	t.Run("in memory", func(t *testing.T) {
		crashtest.TracesAccesses(t)
		eachBuild(t, []build{{"front.c", "gcc", "-O0"}, {"best.cpp", "clang++", "-O0"}, {"early.c", "gcc", "-O0"}}, text, "SIGSEGV", check)
	})
}
