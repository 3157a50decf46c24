package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// runawayPrograms leave an object at the line that is marked CAUSE, and fail more instructions later than are followed.
var runawayPrograms = map[string]string{
	// The access that fails is not the first one outside of the object, and many other objects follow it.
	"words.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned long sum;
__attribute__((noinline)) static void mix(unsigned char c)
{
	for (int i = 0; i < 25; i++)
		sum = (sum << 7 | sum >> 57) ^ (c + i) * 0x9e3779b97f4a7c15u;
}
__attribute__((noinline)) static int count(const unsigned char *at)
{
	int words = 0;
	for (;;) {
		while (*at == ' ') // CAUSE
			at++;
		while (*at && *at != ' ') // CAUSE
			mix(*at++);
		if (*at == 1) // CAUSE
			return words;
		words++;
		at++;
	}
}
int main(int argc, char **argv)
{
	char *text = malloc(48);
	memset(text, 'x', 48);
	for (int i = 5; i < 48; i += 6)
		text[i] = ' ';
	if (argc > 1)
		text[47] = 1;
	char *after[4000];
	for (int i = 0; i < 4000; i++)
		memset(after[i] = malloc(48), 'y', 48);
	printf("%d\n", count((unsigned char *)text));
	return 0;
}
`,
	// The object is far larger than what is followed from the start of the function on.
	"codes.c": `#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct region { uint32_t *codes, sum; };
__attribute__((noinline)) static uint32_t mixed(uint32_t sum, uint32_t code)
{
	for (int i = 0; i < 40; i++)
		sum = (sum << 5 | sum >> 27) ^ (code + (uint32_t)i) * 2654435761u;
	return sum;
}
__attribute__((noinline)) static void check(struct region *r)
{
	for (const uint32_t *code = r->codes; *code; code++) // CAUSE
		r->sum = mixed(r->sum, *code); // CAUSE
}
int main(int argc, char **argv)
{
	struct region *r = calloc(1, sizeof *r);
	uint32_t count = 40000;
	r->codes = malloc((count + 1) * sizeof *r->codes);
	for (uint32_t i = 0; i <= count; i++)
		r->codes[i] = 10000 + i;
	if (argc > 1)
		r->codes[count] = 0;
	check(r);
	printf("%u\n", r->sum);
	return 0;
}
`,
	// A short loop through megabytes of other objects, of which one was freed.
	"cells.c": `#include <stdio.h>
#include <stdlib.h>
struct table { size_t rows; int *cells; };
__attribute__((noinline)) static struct table *make(size_t rows)
{
	struct table *t = malloc(sizeof *t);
	t->rows = rows;
	t->cells = malloc(rows * sizeof *t->cells);
	for (size_t i = 0; i < rows; i++)
		t->cells[i] = (int)(i * 7 + 1);
	return t;
}
__attribute__((noinline)) static long total(const struct table *t, int stop)
{
	long sum = 0;
	for (size_t i = 0; t->cells[i] != stop; i++) // CAUSE
		sum += t->cells[i]; // CAUSE
	return sum;
}
int main(int argc, char **argv)
{
	size_t rows = argc > 1 ? strtoul(argv[1], NULL, 0) : 40;
	struct table *a = make(rows), *b = make(rows), *c = make(rows);
	free(b->cells);
	free(b);
	if (argc > 1)
		a->cells[rows - 1] = c->cells[rows - 1] = -5;
	printf("%ld\n", total(a, -5));
	printf("%ld\n", total(c, -5));
	return 0;
}
`,
	// Text without its closing quote: the loop that fails counts the pointer alone, and is all of the trace. Another loop left the object.
	"quotes.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct out { char *text; size_t used, size; unsigned long sum; };
__attribute__((noinline)) static void put(struct out *o, char c)
{
	if (o->used == o->size)
		o->text = realloc(o->text, o->size = o->size ? 2 * o->size : 64);
	o->text[o->used++] = c;
	for (int i = 0; i < SLOW; i++)
		o->sum = (o->sum << 5 | o->sum >> 59) ^ (unsigned char)(c + i);
}
__attribute__((noinline)) static void copy(struct out *o, const char *code)
{
	for (;;) {
		char c = *code++; // CAUSE
		put(o, c);
		if (c == ';')
			return;
		if (c == '"')
			for (;;) {
				c = *code++; // CAUSE
				put(o, c);
				if (c == '"')
					break;
			}
	}
}
int main(int argc, char **argv)
{
	struct out *o = calloc(1, sizeof *o);
	char *code = malloc(40);
	memset(code, 'a', 40);
	code[30] = '"';
	if (argc > 1)
		code[35] = '"', code[39] = ';';
	for (int i = 0; i < 3000; i++)
		memset(malloc(40), 'b', 40);
	copy(o, code);
	printf("%zu\n", o->used);
	return 0;
}
`,
}

// TestRunaway: the first access outside of an object is found where the run has more instructions after it than can be followed.
func TestRunaway(t *testing.T) {
	builds := []build{{"words.c", "gcc", "-O2"}, {"words.c", "clang", "-O0"}, {"codes.c", "gcc", "-O0"}, {"codes.c", "clang", "-O2"},
		{"cells.c", "gcc", "-O0"}, {"cells.c", "gcc", "-O2"}, {"cells.c", "clang", "-O2"}}
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause is named: %+v", d.Unknown)
		}
		c := &d.Causes[0]
		if c.Kind != evidence.CauseHeapOverflow || c.Site == nil || !isCause(runawayPrograms[source], c.Site.Line) || c.Object == nil {
			t.Errorf("%q (%s) at %+v", c.Summary, c.Kind, c.Site)
		}
	}
	text := func(source string) string { return runawayPrograms[source] }
	for _, slow := range []string{"0", "12"} { // all of the run is followed, or only its end
		t.Run("slow "+slow, func(t *testing.T) {
			eachBuild(t, []build{{"quotes.c", "gcc", "-O2"}, {"quotes.c", "clang", "-O0"}}, text, "SIGSEGV", check, "-DSLOW="+slow)
		})
	}
	crashtest.TracesAccesses(t)
	eachBuild(t, builds, text, "SIGSEGV", check)
}
