package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// misledPrograms store a pointer outside of an array of a struct, over another pointer, at CAUSE. What that leads to then is of another type,
// and was stored as it should be.
var misledPrograms = map[string]string{
	// A hash is negative, and the table comes after a pointer to functions.
	"catalog.c": `
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

enum { BUCKETS = 16 };

struct entry { const char *key; int uses; struct entry *next; };
struct format { int (*print)(const char *); };
struct catalog { int count; const struct format *format; long hits; struct entry *slots[BUCKETS]; };

static int plain(const char *s) { return (int)strlen(s); }
static const struct format plain_format = { plain };

__attribute__((noinline)) static int hash(const char *s)
{
	int h = 0;

	for (; *s; s++)
		h = h * 3 + (signed char)*s;
	return h;
}

APART static void add(struct catalog *c, const char *key)
{
	struct entry *e = calloc(1, sizeof(*e));
	int b = hash(key) % BUCKETS;

	e->key = key;
	e->next = c->slots[b];
	c->slots[b] = e; // CAUSE
	c->count++;
}

int main(void)
{
	static const char *keys[] = { "one", "two", "three", "\xfe", "four" };
	struct catalog *c = calloc(1, sizeof(*c));
	int printed = 0;

	c->format = &plain_format;
	for (int i = 0; i < 5; i++)
		add(c, keys[i]);
	for (int i = 0; i < 5; i++)
		printed += c->format->print(keys[i]);
	return printed > 100;
}
`,
	// One shape too many is stored over the style.
	"scene.cpp": `
#include <cstdio>

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

struct Style { int width, step; };
struct Shape { int layer, x, y; };

static Style thin = { 1, 4 };

struct Scene {
	long id = 7;
	Shape *shapes[6] = {};
	Style *style = &thin;
	int used = 0;

	APART void add(Shape *s)
	{
		shapes[used++] = s; // CAUSE
	}
	APART int columns(int room) const { return room / style->width; }
};

int main()
{
	static Shape all[7] = { { 0, 1, 1 }, { 0, 2, 2 }, { 0, 3, 3 }, { 0, 4, 4 }, { 0, 5, 5 }, { 0, 6, 6 }, { 0, 7, 7 } };
	Scene *scene = new Scene;

	for (Shape &s : all)
		scene->add(&s);
	std::printf("%d\n", scene->columns(80));
}
`,
}

// TestMisled: where a pointer was overwritten by a store outside of its array, that store is the cause, and not the value that the pointer then
// led to.
func TestMisled(t *testing.T) {
	text := func(source string) string { return misledPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 || d.Causes[0].Site == nil || !isCause(text(source), d.Causes[0].Site.Line) {
			t.Errorf("the first cause is not the store: %+v; leads: %+v", d.Causes, d.Leads)
		}
	}
	eachBuild(t, []build{{"catalog.c", "gcc", "-O1"}, {"catalog.c", "gcc", "-O2"}, {"catalog.c", "clang", "-O2"}, {"catalog.c", "gcc", "-O0"}}, text, "SIGSEGV", check)
	eachBuild(t, []build{{"scene.cpp", "g++", "-O2"}, {"scene.cpp", "clang++", "-O1"}, {"scene.cpp", "g++", "-O0"}}, text, "SIGFPE", check)
}
