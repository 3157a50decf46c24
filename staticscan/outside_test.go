package staticscan_test

import (
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

// outsideSource reads pointers through indices, of which some lead out of the array that is
// meant, and one leads to a bad pointer inside of it.
const outsideSource = `
#include <stdlib.h>
#include <string.h>
struct cell { long n; const char *text; };
struct sheet { int columns; struct cell cells[6]; long last; const char *title; };
long before[26] = {1};
const char *words[26] = { "alpha", "beta", (const char *)5, "delta" };
long after[26];
static long low[4];
static const char *slots[4] = { "a", "b", "c", "d" };
static struct sheet sheet = { .title = (const char *)7, .last = 77 };
__attribute__((noinline)) static char letter(int c) { return *words[c - 'a']; }
__attribute__((noinline)) static char slot(int i) { return *slots[i]; }
__attribute__((noinline)) static char column(struct sheet *s, int i) { return *s->cells[i].text; }
int main(int argc, char **argv) {
	int i = atoi(argv[2]);
	before[3] = after[2] = argc;
	low[3] = 99, slots[argc & 3] = "e";
	low[argc & 1] = i;
	switch (*argv[1]) {
	case 'l': return letter(i);
	case 's': return slot(i);
	}
	return column(&sheet, i);
}`

// TestOutside: a bad pointer that was read outside of an array is told with the array,
// whatever code led there; one inside of it is not, though the compiler has a constant of
// the index in the array's address.
func TestOutside(t *testing.T) {
	for _, v := range []struct{ compiler, flags string }{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}, {"clang", "-O2"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "outside.c", Text: outsideSource, Compiler: v.compiler, Flags: []string{v.flags}})
		for _, test := range []struct {
			args    [2]string
			array   string
			inlined string // what it is called where the pointer is known
			number  int64
			size    uint64
			beyond  bool
		}{
			{[2]string{"letter", "99"}, "", "", 0, 0, false},
			{[2]string{"column", "6"}, "s->cells", "sheet.cells", 6, 96, false},
			{[2]string{"slot", "90000000"}, "slots", "", 90000000, 32, true},
			{[2]string{"slot", "-90000000"}, "slots", "", -90000000, 32, true},
		} {
			in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: test.args[:]}))
			b, _ := both(t, in, staticscan.Options{})
			o := b.Outside
			if test.beyond {
				o = b.Beyond
			}
			if o == nil || test.array == "" {
				// Where the optimiser computed the index in place it is not known any more.
				if o != nil || test.array != "" && v.flags == "-O0" {
					t.Errorf("%s %s %v: %+v; %s", v.compiler, v.flags, test.args, o, describe(b))
				}
				continue
			}
			if n, ok := o.Number(); !ok || n != test.number || o.Array != test.array && o.Array != test.inlined || o.Size != test.size || o.Index.Role != staticscan.RoleIndex {
				t.Errorf("%s %s %v: %s[%d] (%t) of %d bytes, index %q; want %s[%d] of %d", v.compiler, v.flags, test.args, o.Array, n, ok, o.Size, o.Index.Role, test.array, test.number, test.size)
			}
		}
	}
}
