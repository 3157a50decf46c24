package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
)

// sharedPrograms use an object after it was freed through another place than the one that has its address since SHARED.
var sharedPrograms = map[string]string{
	// A struct is copied with the pointer in it, and both are freed.
	"cues.c": `
#include <stdlib.h>
#include <string.h>

struct cue { char name[12]; int count; unsigned char *levels; };
static struct cue cues[8];
static int used;

__attribute__((noinline)) static struct cue *make(const char *name)
{
	struct cue *c = &cues[used++];

	strcpy(c->name, name);
	c->count = 40;
	c->levels = calloc(1, 40);
	return c;
}

__attribute__((noinline)) static struct cue *follow(const struct cue *from)
{
	struct cue *c = &cues[used++];

	*c = *from; // SHARED
	c->name[0] = 'f';
	return c;
}

__attribute__((noinline)) static void drop(struct cue *c)
{
	free(c->levels);
	c->levels = NULL;
}

int main(void)
{
	struct cue *a = make("one"), *b = make("two"), *c = follow(a);

	c->levels[3] = 7;
	drop(b);
	drop(a);
	drop(c);
	return 0;
}
`,
	// An assignment copies the pointer only.
	"board.cpp": `
#include <cstring>

class Board {
public:
	explicit Board(int n) : n_(n), cells_(new int[n]) { std::memset(cells_, 0, n * sizeof(int)); }
	Board(const Board &o) : n_(o.n_), cells_(new int[o.n_]) { std::memcpy(cells_, o.cells_, n_ * sizeof(int)); }
	Board &operator=(const Board &o)
	{
		n_ = o.n_;
		cells_ = o.cells_; // SHARED
		return *this;
	}
	~Board() { delete[] cells_; }
	int &at(int i) { return cells_[i]; }

private:
	int n_;
	int *cells_;
};

__attribute__((noinline)) static void better(Board &best, const Board &from, int i)
{
	Board next(from);

	next.at(i) = i;
	if (i % 2)
		best = next;
}

int main()
{
	Board start(20), best(20);

	for (int i = 0; i < 4; i++)
		better(best, start, i);
	return 0;
}
`,
	// A table keeps a pointer to what a list frees.
	"index.c": `
#include <stdio.h>
#include <stdlib.h>

struct node { int key, value; struct node *next; };
static struct node *list, *recent[4];

__attribute__((noinline)) static void add(int key)
{
	struct node *n = malloc(sizeof(*n));

	n->key = key;
	n->value = key * 3;
	n->next = list;
	list = n;
}

__attribute__((noinline)) static struct node *find(int key)
{
	for (struct node *n = list; n; n = n->next)
		if (n->key == key) {
			recent[key % 4] = n; // SHARED
			return n;
		}
	return NULL;
}

__attribute__((noinline)) static void forget(void)
{
	struct node *n = list;

	list = n->next;
	n->next = NULL;
	n->value = -1;
	free(n);
}

int main(void)
{
	for (int k = 0; k < 9; k++)
		add(k);
	printf("%d\n", find(8)->value);
	forget();
	if (recent[0]->value != 24)
		abort();
	return 0;
}
`,
}

// ownPrograms use an object after it was freed through the only place that has its address.
var ownPrograms = map[string]string{
	"twice.c": `
#include <stdlib.h>

struct buffer { char *text; int used; };
static struct buffer b;

__attribute__((noinline)) static void reset(void) { char *old = b.text; b.used = 0; free(old); }

int main(void)
{
	b.text = malloc(30);
	b.text[3] = 'x';
	reset();
	reset();
	return 0;
}
`,
}

// TestShared: the story of an object that was freed in one place and used through another has the code that put its address in both.
func TestShared(t *testing.T) {
	text := func(source string) string { return sharedPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		marked := lineOf(text(source), "// SHARED")
		told := func(s evidence.CauseStep) bool {
			return s.Site != nil && s.Site.Line == marked && strings.Contains(s.Text, "second place")
		}
		if len(d.Causes) == 0 || !slices.ContainsFunc(d.Causes[0].Story, told) {
			t.Errorf("the first cause does not tell that line %d stored the address in a second place: %+v", marked, d.Causes)
		}
	}
	eachBuild(t, []build{{"cues.c", "gcc", "-O0"}, {"cues.c", "clang", "-O2"}, {"board.cpp", "g++", "-O2"}, {"board.cpp", "clang++", "-O0"},
		{"index.c", "gcc", "-O2"}, {"index.c", "clang", "-O0"}}, text, "SIGABRT", check)
}

// TestNotShared: an address that is in one place is not told to be in two.
func TestNotShared(t *testing.T) {
	text := func(source string) string { return ownPrograms[source] }
	check := func(t *testing.T, _ string, d *evidence.Diagnosis) {
		for _, c := range d.Causes {
			for _, s := range c.Story {
				if strings.Contains(s.Text, "second place") {
					t.Errorf("%s", s.Text)
				}
			}
		}
	}
	eachBuild(t, []build{{"twice.c", "gcc", "-O0"}, {"twice.c", "clang", "-O2"}}, text, "SIGABRT", check)
}
