package verdict_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// A value that is read from memory which was freed is no uninitialised one, also where the compiler
// left out the stores before the free, so that nothing but the heap ever wrote there. Memory that
// was allocated again and not written to is uninitialised.
func TestReadOfFreed(t *testing.T) {
	const c = `
#include <assert.h>
#include <stdlib.h>
struct ticket { long number; int kind; };
__attribute__((noinline)) static void check(struct ticket *t)
{
	assert(t->kind == 2);
}
int main(int argc, char **argv)
{
	struct ticket *t = malloc(sizeof *t);
	if (argc > 1) { // never given a value
		check(t);
		return 0;
	}
	t->kind = 2;
	free(t);
	check(t);
	return 0;
}
`
	const cxx = `
#include <cstdlib>
struct account { int id; long balance; account *next; };
__attribute__((noinline)) static int audit(account *a)
{
	if (a->balance != 100)
		exit(4);
	return 0;
}
int main()
{
	account *a = new account{7, 100, nullptr};
	delete a;
	return audit(a);
}
`
	for _, x := range []struct {
		source, text, compiler, level string
		args                          []string
		ends                          string
		kind                          evidence.CauseKind
		freed                         string
	}{
		{"ticket.c", c, "gcc", "-O2", nil, "SIGABRT", evidence.CauseUseAfterFree, "main (ticket.c:17) freed"},
		{"ticket.c", c, "clang", "-O1", nil, "SIGABRT", evidence.CauseUseAfterFree, "main (ticket.c:17) freed"},
		{"ticket.c", c, "gcc", "-O0", nil, "SIGABRT", evidence.CauseUseAfterFree, "main (ticket.c:17) freed"},
		{"account.cc", cxx, "g++", "-O2", nil, "exit 4", evidence.CauseUseAfterFree, "main (account.cc:13) freed"},
		{"ticket.c", c, "gcc", "-O2", []string{"new"}, "SIGABRT", evidence.CauseUninitialised, ""},
	} {
		t.Run(x.source+x.compiler+x.level+strings.Join(x.args, ""), func(t *testing.T) {
			result := diagnosed(t, crashtest.Program{Source: x.source, Text: x.text, Compiler: x.compiler, Flags: []string{x.level, "-w"}}, x.args, x.ends)
			causes := result.Diagnosis.Causes
			if len(causes) == 0 || causes[0].Kind != x.kind || !strings.HasPrefix(causes[0].Summary, x.freed) {
				t.Errorf("%+v, limits %v", causes, result.Diagnosis.Coverage.Limits)
			}
		})
	}
}
