package verdict_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

const message = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct message { char *body; size_t size; };
static const char text[] = "the quick brown fox jumps over the lazy dog and runs away";
__attribute__((noinline)) static struct message load(int drop)
{
	struct message m = { strdup(text), strlen(text) };
	if (drop)
		free(m.body); /* BUG */
	return m;
}
__attribute__((noinline)) static int same(const struct message *m, const char *want)
{
	return m->size == strlen(want) && memcmp(m->body, want, m->size) == 0;
}
int main(int argc, char **argv)
{
	struct message m = load(argc > 1);
	if (!same(&m, text))
		abort();
	return 0;
}
`

const growing = `
#include <assert.h>
#include <stdlib.h>
#include <string.h>
static char *names;
static size_t room;
static char *add(size_t at, const char *name)
{
	size_t n = strlen(name) + 1;
	if (at + n > room) {
		room = (at + n) * 20;
		names = realloc(names, room); /* BUG: what add returned before is stale */
	}
	return memcpy(names + at, name, n);
}
int main(int argc, char **argv)
{
	names = malloc(room = 32);
	char *first = add(0, "first-name");
	size_t at = 11;
	for (int i = 0; i < argc * 3; i++, at += 13)
		add(at, "another-name");
	char *dash = strchr(first, '-');
	assert(dash && strcmp(dash, "-name") == 0);
	return 0;
}
`

const viewed = `
#include <map>
#include <string>
#include <string_view>
struct config {
	std::map<std::string, std::string> values;
	std::string get(const std::string &key) const { return values.at(key); }
};
int main()
{
	config c;
	c.values["path"] = "/usr/share/application/with-a-long-name/data";
	std::string_view path = c.get("path"); // BUG: a view of a temporary
	return path.substr(0, 5) != "/usr/" ? 3 : 0;
}
`

// harmless uses freed memory, and fails because of something else.
const harmless = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *name = strdup("a name that is long enough to be on the heap");
	volatile int limit = argc * 3;
	free(name);
	if (strlen(name) > 1000)
		puts("long");
	return limit != 4 ? 2 : 0;
}
`

// A status, an assertion or an abort that text in freed memory decided, which a library's function read.
func TestFreedTextDecides(t *testing.T) {
	for _, x := range []struct {
		source, text, compiler, level string
		args                          []string
		ends, freed                   string // freed: the summary begins so; empty: it was not because of a free
	}{
		{"message.c", message, "gcc", "-O2", []string{"drop"}, "SIGABRT", "load (message.c:11) freed the object of 58 bytes"},
		{"message.c", message, "clang", "-O0", []string{"drop"}, "SIGABRT", "load (message.c:11) freed the object of 58 bytes"},
		{"growing.c", growing, "gcc", "-O0", nil, "SIGABRT", "add (growing.c:12) freed the object of 32 bytes"},
		{"growing.c", growing, "clang", "-O2", nil, "SIGABRT", "add (growing.c:12) freed the object of 32 bytes"},
		{"viewed.cc", viewed, "g++", "-O2", []string{}, "exit 3",
			"std::basic_string<char, std::char_traits<char>, std::allocator<char> >::~basic_string, called in main (viewed.cc:13), freed the object of 45 bytes"},
		{"harmless.c", harmless, "gcc", "-O1", nil, "exit 2", ""},
	} {
		t.Run(x.source+x.compiler+x.level, func(t *testing.T) {
			crashtest.TracesAccesses(t)
			flags := []string{x.level, "-w"}
			if strings.HasSuffix(x.source, ".cc") {
				flags = append(flags, "-std=c++17")
			}
			result := diagnosed(t, crashtest.Program{Source: x.source, Text: x.text, Compiler: x.compiler, Flags: flags}, x.args, x.ends)
			causes := result.Diagnosis.Causes
			if x.freed == "" {
				for i := range causes {
					if causes[i].Kind == evidence.CauseUseAfterFree {
						t.Errorf("a harmless use is a cause: %+v", causes[i])
					}
				}
				return
			}
			if len(causes) != 1 || causes[0].Kind != evidence.CauseUseAfterFree || causes[0].Proof != evidence.Proved || !strings.HasPrefix(causes[0].Summary, x.freed) {
				t.Errorf("%+v, limits %v", causes, result.Diagnosis.Coverage.Limits)
			}
		})
	}
}
