package staticscan_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

const globalsSource = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct worker { int id, state; double load; };
struct config { int flag; struct worker workers[4]; char *path; } cfg;
struct item { long n; struct item *next; } *current;
int counters[16];
static int hits;
__thread int tls_count;
__thread long tls_array[4];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const int table[4] = {1, 2, 3, 4};
const char *const texts[2] = {"a", "b"};
extern int never_touched;
int never_touched = 5;
#define OWN __attribute__((noinline))
OWN int own_stack_only(int *volatile p, int i) { int a[8]; a[i & 7] = table[i & 3] + texts[i & 1][0]; return a[i & 7] + *p; }
OWN int helper(void) { return cfg.workers[2].id++; }
OWN int work(int *p, int i) {
	static int calls;
	calls++;
	hits += table[i & 3];
	counters[i]++;
	cfg.workers[i].state = 7;
	cfg.workers[3].id = helper();
	cfg.flag = 1;
	tls_count++;
	tls_array[2] = i;
	current->next->n++;
	pthread_mutex_lock(&lock);
	if (!p) fprintf(stderr, "the worker broke\n");
	return *p;
}
int main(int argc, char **argv) {
	current = calloc(1, sizeof *current);
	current->next = calloc(1, sizeof *current);
	if (argv[1][0] == 's') return own_stack_only(NULL, argc);
	return work(NULL, argc) + 1;
}
`

func names(scan evidence.Scan) []string {
	var list []string
	for _, s := range scan.Suspects {
		list = append(list, s.Name)
	}
	return list
}

func find(t *testing.T, scan evidence.Scan, name string) evidence.Suspect {
	t.Helper()
	for _, s := range scan.Suspects {
		if s.Name == name {
			return s
		}
	}
	t.Errorf("no suspect %s among %v", name, names(scan))
	return evidence.Suspect{}
}

// wanted are the suspects of work in every variant.
var wanted = []struct {
	name, typ, value string
	kind             evidence.SuspectKind
	size             int
	access           evidence.AccessKind
}{
	{"calls", "int", "1", evidence.SuspectGlobal, 4, evidence.ReadWrite},
	{"hits", "int", "3", evidence.SuspectGlobal, 4, evidence.ReadWrite},
	{"counters[...]", "int", "", evidence.SuspectGlobal, 64, evidence.ReadWrite},
	{"cfg.workers[...].state", "int", "", evidence.SuspectGlobal, 64, evidence.Write},
	{"cfg.workers[3].id", "int", "0", evidence.SuspectGlobal, 4, evidence.Write},
	{"cfg.flag", "int", "1", evidence.SuspectGlobal, 4, evidence.Write},
	{"tls_count", "int", "1", evidence.SuspectTLS, 4, evidence.ReadWrite},
	{"tls_array[2]", "long", "2", evidence.SuspectTLS, 8, evidence.Write},
	{"current", "struct item *", "", evidence.SuspectGlobal, 8, evidence.Read},
	{"current->next", "struct item *", "", evidence.SuspectHeap, 8, evidence.Read},
	{"current->next->n", "long", "1", evidence.SuspectHeap, 8, evidence.ReadWrite},
}

// variants of the globals: executables of both kinds, and a shared library
// that reaches them through its global offset table and __tls_get_addr.
var variants = []struct {
	name, compiler string
	flags          []string
	shared         bool
}{
	{"gcc-O0", "gcc", []string{"-O0"}, false},
	{"gcc-O2", "gcc", []string{"-O2"}, false},
	{"gcc-O0-nopie", "gcc", []string{"-O0", "-fno-pie", "-no-pie"}, false},
	{"clang-O2", "clang", []string{"-O2"}, false},
	{"gcc-O2-shared", "gcc", []string{"-O2"}, true},
	{"gcc-O0-shared", "gcc", []string{"-O0"}, true},
}

func buildGlobals(t *testing.T, compiler string, flags []string, shared bool) string {
	if !shared {
		return crashtest.Compile(t, crashtest.Program{Source: "globals.c", Text: globalsSource, Compiler: compiler, Flags: append(flags, "-pthread")})
	}
	lib := crashtest.Compile(t, crashtest.Program{Source: "globals.c", Compiler: compiler, Output: "libglobals.so",
		Text: strings.Replace(globalsSource, "int main(", "int start(", 1), Flags: append(flags, "-fPIC", "-shared", "-pthread")})
	return crashtest.Compile(t, crashtest.Program{Source: "main.c", Compiler: compiler,
		Text:  "int start(int, char **); int main(int c, char **v) { return start(c, v) + 1; }",
		Flags: []string{"-O0", lib, "-Wl,-rpath," + filepath.Dir(lib)}})
}

func TestGlobals(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			exe := buildGlobals(t, v.compiler, v.flags, v.shared)
			in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"w"}}))
			b, scan := both(t, in, staticscan.Options{})
			if b.Pointer != "p" || b.Accessed != "*p" {
				t.Errorf("blame: %s", describe(b))
			}
			for _, w := range wanted {
				s := find(t, scan, w.name)
				if s.Kind != w.kind || s.Size != w.size || s.Access != w.access || strings.TrimSuffix(s.Type, " int") != w.typ {
					t.Errorf("got %+v, want %+v", s, w)
				}
				if w.value != "" && s.Value.Text != w.value {
					t.Errorf("%s was %+v, want %s", s.Name, s.Value, w.value)
				}
			}
			for _, s := range scan.Suspects {
				if strings.HasPrefix(s.Name, "table") || strings.HasPrefix(s.Name, "texts") || s.Name == "never_touched" || strings.HasPrefix(s.Name, "cfg.workers[2]") {
					t.Errorf("%s is no suspect", s.Name)
				}
			}
			deep, _, err := staticscan.Run(in, staticscan.Options{Depth: 1})
			if err != nil || !slices.Contains(deep.Functions, "helper") {
				t.Errorf("scope at depth 1: %v, %v", deep.Functions, err)
			}
			find(t, deep, "cfg.workers[2].id")
			testMessage(t, in)
		})
	}
}

func testMessage(t *testing.T, in staticscan.Input) {
	t.Helper()
	scan, _, err := staticscan.Run(in, staticscan.Options{Message: "worker broke"})
	if err != nil || !slices.Contains(scan.Functions, "work") {
		t.Errorf("functions that refer to the message: %v, %v", scan.Functions, err)
	}
	if _, _, err := staticscan.Run(in, staticscan.Options{Message: "no such text anywhere"}); err == nil {
		t.Error("a message that no literal contains was found")
	}
	scan, _, err = staticscan.Run(in, staticscan.Options{Functions: []string{"helper"}})
	if err != nil || len(scan.Functions) != 1 || len(scan.Suspects) != 1 || scan.Suspects[0].Name != "cfg.workers[2].id" {
		t.Errorf("scan of helper: %+v, %v", scan, err)
	}
	if _, _, err := staticscan.Run(in, staticscan.Options{Functions: []string{"no_such_function"}}); err == nil {
		t.Error("a function that does not exist was scanned")
	}
}

func TestStackOnlyYieldsNothing(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O2"}} {
		exe := buildGlobals(t, "gcc", flags, false)
		in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"s"}}))
		scan, _, err := staticscan.Run(in, staticscan.Options{})
		if err != nil || scan.Functions[0] != "own_stack_only" || scan.MemoryOperands == 0 {
			t.Fatalf("%v: %+v, %v", flags, scan, err)
		}
		if len(scan.Suspects) > 0 {
			t.Errorf("%v: suspects %v of a function that touches its own stack and constants", flags, names(scan))
		}
	}
}

const accountSource = `
#include <stddef.h>
#include <stdlib.h>
struct user { int id, logins; };
struct session { int id; struct user *user; } sessions[2];
#define OWN __attribute__((noinline, noipa))
OWN int tail(struct session *s)
{
	int n = s->user->id;
	return n + s->user->logins;
}
OWN int heap(struct session *s, int *bad) { s->id++; return *bad; }
int main(int argc, char **argv) {
	switch (argv[1][0]) {
	case 't': return tail(&sessions[1]) + 1;
	case 'h': return heap(malloc(64), NULL) + 1;
	}
	return argc;
}
`

// TestUnresolved: only what may be shared memory counts as unresolved: not the
// function's stack, the null pointer, or the cell it was loaded from.
func TestUnresolved(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		for _, flag := range []string{"-O0", "-O2"} {
			exe := crashtest.Compile(t, crashtest.Program{Source: "account.c", Text: accountSource, Compiler: compiler, Flags: []string{flag}})
			touched := map[string]int{"-O0": 2, "-O2": 1}[flag] // s->id++ is a load and a store, or one instruction
			for function, unresolved := range map[string]int{"tail": 0, "heap": touched} {
				in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{function[:1]}}))
				_, scan := both(t, in, staticscan.Options{})
				if scan.Functions[0] != function || scan.MemoryOperands < 2 || scan.Unresolved != unresolved {
					t.Errorf("%s %s: %s: %d operands, %d unresolved, want %d", compiler, flag, scan.Functions,
						scan.MemoryOperands, scan.Unresolved, unresolved)
				}
			}
		}
	}
}

// TestWithoutDebugInfo strips the program of DWARF, then of symbols as well.
func TestWithoutDebugInfo(t *testing.T) {
	for _, strip := range []string{"--strip-debug", "--strip-all"} {
		exe := buildGlobals(t, "gcc", []string{"-O0"}, false)
		if out, err := exec.Command("strip", strip, exe).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, out)
		}
		in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"w"}}))
		b, scan := both(t, in, staticscan.Options{})
		if b.Role != staticscan.RolePointer || b.Accessed != "[rax]" || b.Cell == nil || len(b.Steps) < 3 {
			t.Errorf("%s: %s", strip, describe(b))
		}
		if strip == "--strip-debug" {
			find(t, scan, "cfg+0x38")
			find(t, scan, "counters[...]")
			if s := find(t, scan, "[current]+0x8"); s.Kind != evidence.SuspectHeap {
				t.Errorf("%+v", s)
			}
		}
		if len(scan.Suspects) < 8 {
			t.Errorf("%s: suspects %v", strip, names(scan))
		}
	}
}

// TestEveryFixture runs the analysis over all crash programs: whatever they
// die of, it must come back with a result that contradicts nothing.
func TestEveryFixture(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles many programs")
	}
	for _, name := range []string{"null_call", "jump_unmapped", "execute_data", "assert", "tail_calls", "signal_altstack", "cxx_virtual_null", "rust_null_deref", "stack_overflow"} {
		t.Run(name, func(t *testing.T) {
			f := crashtest.Named(t, name)
			in := opened(t, f.Crash(t, f.Variants()[0]).Core)
			blame, err := staticscan.Origin(in, staticscan.OriginOptions{})
			if err != nil {
				t.Fatal(err)
			}
			scan, _, err := staticscan.Run(in, staticscan.Options{Depth: 1, Blame: &blame})
			if err != nil {
				t.Fatal(err)
			}
			check(t, blame, scan)
			t.Log(describe(blame))
		})
	}
}

func TestMain(m *testing.M) { crashtest.Main(m) }
