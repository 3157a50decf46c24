package staticscan_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

const handedSource = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct { size_t used; char text[4096]; } journal;
struct { char name[32]; int n; } peer, copy;
static char path[256], answer[64];
static char unused[64];
struct node { struct node *next; char name[56]; } *first;
#define OWN __attribute__((noinline, noipa))
OWN void own(void *p) { __asm__ volatile("" : : "r"(p)); }
OWN long work(int *p, size_t at, size_t n, const char *line)
{
	long sum = strnlen(journal.text + at, n);

	memcpy(journal.text + at, line, n);
	memmove(&copy, &peer, n);
	sum += strlen(path) + read(-1, answer, sizeof(answer));
	sum += strcmp(first->name, line);
	own(unused);
	return sum + *p;
}
int main(int argc, char **argv) { first = calloc(1, sizeof(*first)); return work(NULL, argc, argc, argv[0]) + 1; }
`

// TestHandedToLibrary: memory whose address a function of the C library is handed
// is a suspect like what the code itself reads and writes.
func TestHandedToLibrary(t *testing.T) {
	for _, v := range variants {
		if v.shared {
			continue
		}
		for _, more := range [][]string{nil, {"-fno-plt"}, {"-D_FORTIFY_SOURCE=2", "-Wno-all"}} {
			name := v.name + strings.Join(more, "")
			t.Run(name, func(t *testing.T) {
				flags := append(append([]string{}, v.flags...), more...)
				exe := crashtest.Compile(t, crashtest.Program{Source: "handed.c", Text: handedSource, Compiler: v.compiler, Flags: flags})
				in := opened(t, crashtest.Core(t, exe, crashtest.Run{}))
				_, scan := both(t, in, staticscan.Options{})
				for _, w := range []struct {
					name   string
					size   int
					access evidence.AccessKind
				}{
					{"journal.text[...]", 4096, evidence.ReadWrite},
					{"copy.name[...]", 32, evidence.Write},
					{"peer.name[...]", 32, evidence.Read},
					{"path[...]", 256, evidence.Read},
					{"answer", 64, evidence.Write},
					{"first->name", 8, evidence.Read},
				} {
					if s := find(t, scan, w.name); s.Size != w.size || s.Access != w.access {
						t.Errorf("%s: %d bytes, %s, want %d, %s", w.name, s.Size, s.Access, w.size, w.access)
					}
				}
				for _, s := range scan.Suspects {
					if strings.HasPrefix(s.Name, "unused") {
						t.Errorf("%s is handed to a function of the program's own, which does nothing", s.Name)
					}
				}
				_, scan = both(t, in, staticscan.Options{Handed: true})
				find(t, scan, "unused")
			})
		}
	}
}
