package verdict_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// A null pointer may be that of no elements: then neither it nor the access is called the cause. Where the count is no 0, the null is.
func TestNoElements(t *testing.T) {
	crashtest.TracesAccesses(t)
	programs := map[string]string{"grow.c": `
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct buffer { char *data; int used, size; };
static struct buffer *buffer;
static void fell(int sig)
{
	volatile long spun = 0;
	for (long i = 0; i < 40000; i++)
		spun += i;
	_exit(sig);
}
__attribute__((noinline)) static void make(int used)
{
	buffer = malloc(sizeof *buffer);
	buffer->data = NULL; // CAUSE
	buffer->used = used;
	buffer->size = 0;
}
__attribute__((noinline)) static void grow(int size)
{
	char *old = buffer->data;
	buffer->data = malloc(size);
	memcpy(buffer->data, old, buffer->used + 1); // LEAD
	free(old);
	buffer->size = size;
}
int main(int argc, char **argv)
{
	signal(SIGSEGV, fell);
	make(argc - 2);
	grow(64);
	return buffer->data[0];
}
`, "sum.c": `
#include <stdio.h>
#include <stdlib.h>
struct list { long *items; long count; };
__attribute__((noinline)) static void fill(struct list *l, long count)
{
	l->count = count;
	l->items = NULL; // CAUSE
	if (count > 1)
		l->items = calloc(count, sizeof *l->items);
}
__attribute__((noinline)) static long sum(const struct list *l, long from)
{
	long sum = 0;
	for (long i = from; i <= l->count; i++) // LEAD
		sum += l->items[i];
	return sum;
}
int main(int argc, char **argv)
{
	struct list *l = malloc(sizeof *l);
	fill(l, argc - 2);
	printf("%ld\n", sum(l, 0));
	return 0;
}
`, "resize.c": `
#include <stdio.h>
#include <stdlib.h>
struct list { long *items; long count; };
__attribute__((noinline)) static void *resize(void *old, size_t size)
{
	if (size == 0) {
		free(old);
		return NULL; // LEAD
	}
	return realloc(old, size);
}
__attribute__((noinline)) static void fill(struct list *l, long count)
{
	l->items = resize(l->items, count * sizeof *l->items);
	l->count = count;
}
__attribute__((noinline)) static long first(const struct list *l) { return l->items[0]; }
int main(int argc, char **argv)
{
	struct list *l = calloc(1, sizeof *l);
	fill(l, argc);
	l->items[0] = argc;
	fill(l, argc - 2);
	printf("%ld\n", first(l));
	return 0;
}
`, "copy.c": `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry { char *name; long uses; };
__attribute__((noinline)) static char *copy(const char *text)
{
	if (!text)
		return NULL; // CAUSE
	char *to = malloc(strlen(text) + 1);
	return to ? strcpy(to, text) : NULL;
}
__attribute__((noinline)) static int initial(const struct entry *e) { return e->name[0]; }
int main(int argc, char **argv)
{
	struct entry *e = calloc(1, sizeof *e);
	e->name = copy(argv[argc]);
	printf("%d\n", initial(e));
	return 0;
}
`}
	for _, x := range []struct {
		source, compiler, level string
		arguments               []string
		fails                   string
		lead                    bool
	}{
		{"grow.c", "gcc", "-O2", []string{"a"}, "exit 11", true},
		{"grow.c", "clang", "-O0", []string{"a"}, "exit 11", true},
		{"grow.c", "gcc", "-O0", []string{"a", "b"}, "exit 11", false},
		{"sum.c", "gcc", "-O0", []string{"a"}, "SIGSEGV", true},
		{"sum.c", "clang", "-O0", []string{"a"}, "SIGSEGV", true},
		{"sum.c", "gcc", "-O2", []string{"a", "b"}, "SIGSEGV", false},
		{"resize.c", "gcc", "-O2", []string{"a"}, "SIGSEGV", true},
		{"resize.c", "clang", "-O0", []string{"a"}, "SIGSEGV", true},
		{"copy.c", "gcc", "-O0", []string{"a"}, "SIGSEGV", false},
	} {
		t.Run(x.source+x.level+x.compiler+strings.Join(x.arguments, ""), func(t *testing.T) {
			result := diagnosed(t, crashtest.Program{Source: x.source, Text: programs[x.source], Compiler: x.compiler, Flags: []string{x.level}}, x.arguments, x.fails)
			list, mark, open := result.Diagnosis.Causes, "// CAUSE", evidence.OpenEnd("")
			if x.lead {
				if len(list) > 0 {
					t.Errorf("%q is called a cause", list[0].Summary)
				}
				list, mark, open = result.Diagnosis.Leads, "// LEAD", evidence.OpenEmpty
			}
			if len(list) == 0 {
				t.Fatalf("nothing is told: %+v, %v", result.Diagnosis.Unknown, result.Limits)
			}
			before, _, _ := strings.Cut(programs[x.source], mark)
			if c := &list[0]; c.Site == nil || c.Site.Line != strings.Count(before, "\n")+1 || c.Open != open {
				t.Errorf("%q at %+v (%s), want %s", c.Summary, c.Site, c.Open, mark)
			}
		})
	}
}
