package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// restoredPrograms use a null pointer that a variable had before: as the end of a list it is right, so what made it is no cause. In dropped.c
// the list loses its elements at the line that is marked CAUSE.
var restoredPrograms = map[string]string{
	"calculator.c": `#include <stdlib.h>
struct number { long value; struct number *below; };
static struct number *top;
__attribute__((noinline)) static void clear(void) { top = NULL; } // LEAD
__attribute__((noinline)) static void push(long value)
{
	struct number *n = malloc(sizeof *n);
	n->value = value;
	n->below = top;
	top = n;
}
__attribute__((noinline)) static long pop(void)
{
	struct number *n = top;
	long value = n->value;
	top = n->below;
	free(n);
	return value;
}
int main(int argc, char **argv)
{
	clear();
	for (int i = 0; i < argc + 4; i++)
		push(i);
	for (int i = 0; i < argc + 1; i++)
		push(pop() + pop());
	long sum = 0;
	for (int i = 0; i < argc + 4; i++)
		sum += pop();
	return (int)sum;
}
`,
	"pool.cc": `#include <new>
struct block { block *next; char text[24]; };
class pool {
	long taken;
	block *free_;
public:
	__attribute__((noinline)) pool() : taken(0), free_(nullptr) {} // LEAD
	__attribute__((noinline)) void give(block *b) { b->next = free_; free_ = b; taken--; }
	__attribute__((noinline)) block *take() { block *b = free_; free_ = b->next; taken++; return b; }
};
static char memory[sizeof(pool)];
int main(int argc, char **argv)
{
	pool *volatile p = new (memory) pool;
	static block blocks[8];
	for (auto &b : blocks)
		p->give(&b);
	block *last = nullptr;
	for (int i = 0; i < argc + 8; i++) {
		last = p->take();
		last->text[0] = (char)i;
	}
	return last->text[0];
}
`,
	"dropped.c": `#include <stdlib.h>
struct job { long size; struct job *next; };
static struct job *waiting;
__attribute__((noinline)) static void start(void) { waiting = NULL; }
__attribute__((noinline)) static void add(long size)
{
	struct job *j = malloc(sizeof *j);
	j->size = size;
	j->next = waiting;
	waiting = j;
}
__attribute__((noinline)) static void stop(void) { waiting = NULL; } // CAUSE
__attribute__((noinline)) static long largest(void)
{
	struct job *best = waiting;
	for (struct job *j = best->next; j; j = j->next)
		if (j->size > best->size)
			best = j;
	return best->size;
}
int main(int argc, char **argv)
{
	start();
	for (int i = 0; i < argc + 2; i++)
		add(i);
	if (argc < 2)
		stop();
	return (int)largest();
}
`,
}

// TestRestored: a value that memory had before, and got back from elsewhere, ends a lead.
func TestRestored(t *testing.T) {
	crashtest.TracesAccesses(t)
	var builds []build
	for _, b := range []build{{"", "gcc", "-O0"}, {"", "clang", "-O2"}} {
		for source := range restoredPrograms {
			b.source = source
			builds = append(builds, b)
		}
	}
	eachBuild(t, builds, func(source string) string { return restoredPrograms[source] }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
		if source == "dropped.c" {
			if want := lineOf(restoredPrograms[source], "// CAUSE"); len(d.Causes) == 0 || d.Causes[0].Site == nil || d.Causes[0].Site.Line != want {
				t.Errorf("the causes are %+v, want one at line %d", d.Causes, want)
			}
			return
		}
		if len(d.Causes) > 0 {
			t.Errorf("%q is called a cause", d.Causes[0].Summary)
		}
		if len(d.Leads) == 0 || d.Leads[0].Open != evidence.OpenRestored {
			t.Errorf("the leads are %+v, unknown %+v", d.Leads, d.Unknown)
		}
	})
}
