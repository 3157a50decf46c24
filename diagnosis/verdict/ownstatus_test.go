package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// ownStatusPrograms end with a status other than 0 where nothing fails: what they were given is wrong, and they say so.
var ownStatusPrograms = map[string]string{
	// A name that is too long is stored in an object, and what the program opens later is missing.
	"name.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry { char *name; int line; };
__attribute__((noinline)) static void named(struct entry *e, const char *name, int line)
{
	e->name = malloc(12);
	for (int i = 0; name[i]; i++)
		e->name[i] = name[i]; // CAUSE
	e->line = line;
}
int main(int argc, char **argv)
{
	struct entry e;
	named(&e, argc > 1 ? argv[1] : "a-name-of-many-letters", 7);
	FILE *f = fopen("/nonexistent/list", "r");
	int line = e.line;
	free(e.name);
	if (!f) {
		fprintf(stderr, "line %d: no list\n", line);
		exit(3);
	}
	return 0;
}
`,
	// A reader reports what is wrong with its text, in an object that it has freed.
	"reader.cpp": `#include <cstdio>
#include <cstdlib>
#include <cstring>
struct Note { const char *text; int code; };
struct Reader { Note *note; int bad; };
__attribute__((noinline)) static void close(Reader *r)
{
	delete r->note; // CAUSE
}
__attribute__((noinline)) static void read(Reader *r, const char *text)
{
	for (; *text; text++)
		if (*text == '!') {
			r->note->text = text;
			r->note->code = 2;
			r->bad++;
		}
}
int main(int argc, char **argv)
{
	Reader r = {new Note{"", 0}, 0};
	read(&r, argc > 1 ? argv[1] : "a ! text");
	close(&r);
	if (!r.bad)
		return 0;
	std::fprintf(stderr, "at %zu\n", std::strlen(r.note->text));
	return r.note->code;
}
`,
}

// TestOwnStatus: a run that computes what the recorded one did, only in memory that is large enough or not freed, ends as it would without
// the bug, whatever its status is.
func TestOwnStatus(t *testing.T) {
	text := func(source string) string { return ownStatusPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 || d.Causes[0].Site == nil || d.Causes[0].Proof != evidence.Proved || !isCause(ownStatusPrograms[source], d.Causes[0].Site.Line) {
			t.Errorf("unknown %+v, causes %+v", d.Unknown, d.Causes)
		}
	}
	eachBuild(t, []build{{"name.c", "gcc", "-O0"}, {"name.c", "clang", "-O2"}}, text, "SIGABRT", check)
	eachBuild(t, []build{{"reader.cpp", "g++", "-O1"}, {"reader.cpp", "clang++", "-O2"}}, text, "SIGSEGV", check)
}
