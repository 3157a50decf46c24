package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// afterArrayPrograms store to a member behind an array with which their structs begin, by a pointer to the struct that has the array's address, too. None of
// them overruns an array; a value that they compute is wrong, and a check finds it.
var afterArrayPrograms = map[string]string{
	"loop.c": `#include <assert.h>
#include <stdio.h>
struct heap { long slot[8]; int n; };
struct loop { struct heap heap; long now; int fired; };
static struct loop timers;
static const long times[] = {1, 3, 5, 4, 9};
__attribute__((noinline)) static long next(struct heap *h) { return h->slot[--h->n]; }
__attribute__((noinline)) static void run(struct loop *lp)
{
	while (lp->heap.n > 0) {
		long t = next(&lp->heap);
		fflush(stdout);
		assert(t >= lp->now);
		lp->now = t;
		lp->fired++;
	}
}
int main(void)
{
	for (int i = 4; i >= 0; i--)
		timers.heap.slot[timers.heap.n++] = times[i];
	run(&timers);
	return 0;
}
`,
	"log.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct log { char text[256]; size_t used; int lines; };
struct session { int id; struct log log; };
static struct session session = {7, {"", 0, 0}};
__attribute__((noinline)) static size_t escape(const char *s, size_t n, char *to)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (s[i] != '\n')
			to[k++] = s[i];
	return k;
}
static void append(struct log *l, const char *s)
{
	size_t n = strlen(s), k = escape(s, n, l->text + l->used);
	l->used += k;
	l->lines += k < n;
}
__attribute__((noinline)) static void check(const struct log *l, int lines)
{
	if (l->lines != lines || l->used > 20) {
		fprintf(stderr, "%d lines in %zu bytes\n", l->lines, l->used);
		abort();
	}
}
int main(void)
{
	static const char *texts[] = {"one\n", "and two\n", "and three more\n"};
	for (int i = 0; i < 3; i++) {
		append(&session.log, texts[i]);
		check(&session.log, i + 1);
	}
	return 0;
}
`,
	"station.cpp": `#include <cstdio>
#include <cstdlib>
struct Ring {
	int items[16];
	unsigned head, tail;
	void put(int v) { items[head++ % 16] = v; }
	int get() { return items[tail++ % 16]; }
};
struct Station : Ring {
	int level;
	void drain() { while (tail != head) level -= get(); }
};
static Station stations[3];
[[gnu::noinline]] static void verify(Station &s)
{
	if (s.level < 0) {
		std::fprintf(stderr, "level %d\n", s.level);
		std::abort();
	}
}
[[gnu::noinline]] static void fill(Ring &r, int n)
{
	for (int i = 0; i < n; i++)
		r.put(i);
}
int main()
{
	for (Station &s : stations)
		s.level = 20;
	fill(stations[1], 7);
	for (Station &s : stations) {
		s.drain();
		verify(s);
	}
}
`,
}

// A store to a member that the code means is no overrun of the array before it.
func TestMemberAfterArray(t *testing.T) {
	var builds []build
	for source, compilers := range map[string][]string{"loop.c": {"gcc", "clang"}, "log.c": {"gcc", "clang"}, "station.cpp": {"g++", "clang++"}} {
		for _, compiler := range compilers {
			for _, level := range []string{"-O0", "-O1", "-O2"} {
				builds = append(builds, build{source, compiler, level})
			}
		}
	}
	eachBuild(t, builds, func(source string) string { return afterArrayPrograms[source] }, "SIGABRT", func(t *testing.T, source string, d *evidence.Diagnosis) {
		for i := range d.Causes {
			if c := &d.Causes[i]; c.Kind == evidence.CauseOverwritten || c.Basis == evidence.BasisBounds || c.Proof == evidence.Proved {
				t.Errorf("%s: %s (%s)", c.Kind, c.Summary, c.Proof)
			}
		}
	})
}
