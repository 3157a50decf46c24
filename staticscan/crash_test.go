package staticscan_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
	"diagnose/staticscan"
)

// opened is a real core, walked.
func opened(t testing.TB, core string) staticscan.Input {
	t.Helper()
	p, err := image.OpenCore(core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if p.Failing < 0 {
		t.Fatal("the core names no failing thread")
	}
	thread := &p.Threads[p.Failing]
	u := unwind.New(p)
	stack := u.Walk(thread, 64)
	u.Symbolize(stack.Frames)
	return staticscan.Input{Process: p, Thread: thread, Frames: stack.Frames}
}

// both runs Origin and, with its blame, Run.
func both(t testing.TB, in staticscan.Input, opts staticscan.Options) (staticscan.Blame, evidence.Scan) {
	t.Helper()
	blame, err := staticscan.Origin(in, staticscan.OriginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opts.Blame = &blame
	scan, limits, err := staticscan.Run(in, opts)
	if err != nil {
		t.Fatalf("%v (limits %v)", err, limits)
	}
	check(t, blame, scan)
	return blame, scan
}

// check holds the result against what every Case must fulfil.
func check(t testing.TB, blame staticscan.Blame, scan evidence.Scan) {
	t.Helper()
	c := evidence.Case{Failure: evidence.Failure{Kind: evidence.NullPointer, Sentence: "x", Proof: evidence.FromCore, Origin: blame.Steps}, Scan: &scan}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if scan.Unresolved > scan.MemoryOperands || scan.MemoryOperands == 0 {
		t.Errorf("%d of %d operands unresolved", scan.Unresolved, scan.MemoryOperands)
	}
	for i, s := range scan.Suspects {
		if s.Rank != i || s.Name == "" || s.Size <= 0 || len(s.Lines) == 0 {
			t.Errorf("suspect %d: %+v", i, s)
		}
		if s.Kind == evidence.SuspectCell && !slices.ContainsFunc(s.Lines, func(u evidence.SuspectUse) bool { return u.Site.Line == blame.Loaded.Line }) {
			t.Errorf("the cell's uses %+v lack where it was loaded: %+v", s.Lines, blame.Loaded)
		}
	}
}

func describe(b staticscan.Blame) string {
	var s strings.Builder
	fmt.Fprintf(&s, "role %s, pointer %q, accessed %q, function %q through %q\n", b.Role, b.Pointer, b.Accessed, b.Function, b.Through)
	for _, step := range b.Steps {
		fmt.Fprintf(&s, "  %s: %s [%s]\n", step.Kind, step.Text, step.Proof)
	}
	return s.String()
}

const crashSource = `
#include <cstring>
#include <cstdlib>
extern volatile int sink;
struct Shape { virtual ~Shape() {} virtual int area(int) = 0; };
struct Sq : Shape { int s; int area(int k) override; };
struct Node { int v; Node *next; };
struct Conn { char buf[16]; Node *head; void (*cb)(int); Shape *shape; int divisor; };
struct Server {
	Conn *conns[4]; int n;
	int sum(int i); void fire(int i); int shape(int i); int div(int i); long idx(long i); size_t name(int i); void copy(int i);
};
namespace app { Server server; static Server *inst = &server; }
int Sq::area(int k) { return s * k; }
#define OWN __attribute__((noinline))
OWN int Server::sum(int i) { return conns[i]->head->v; }
OWN void Server::fire(int i) { n++; conns[i]->cb(i); n--; }
OWN int Server::shape(int i) { return conns[i]->shape->area(2) + 1; }
OWN int Server::div(int i) { return n / conns[i]->divisor; }
int bigarr[8];
OWN long Server::idx(long i) { return bigarr[i]; }
char *names[4];
OWN size_t Server::name(int i) { return strlen(names[i]) + 1; }
OWN void Server::copy(int i) { memcpy(conns[i]->buf, (void *)conns[i]->head, n); }
static inline int deep(Server *srv, int k) { return srv->conns[k]->head->v; }
OWN int inlined(Server *given, int k) { return deep(given, k) + 1; }
OWN void jump(void **p) { ((void (*)())p[1])(); asm(""); }
volatile int sink;
int main(int argc, char **argv) {
	app::inst->n = 300;
	Conn *c = (Conn *)calloc(1, sizeof(Conn));
	app::inst->conns[1] = c;
	int i = argc - 1;
	void *q[2] = {0, (void *)0x1234567890abcdefULL};
	switch (argv[1][0]) {
	case 's': sink = app::inst->sum(i); break;
	case 'S': sink = app::inst->sum(i + 1); break;
	case 'f': app::inst->fire(i); break;
	case 'v': sink = app::inst->shape(i); break;
	case 'd': sink = app::inst->div(i); break;
	case 'i': sink = app::inst->idx(i * 100000000L); break;
	case 'n': sink = app::inst->name(i); break;
	case 'c': app::inst->copy(i); break;
	case 'j': jump(q); break;
	case 'l': sink = inlined(app::inst, i); break;
	}
}
`

// crashes are expected in every variant. A text with a bar in it is a regular
// expression, but for its brackets: compilers differ in what they inline and in whether
// a class is only declared.
var crashes = []struct {
	arg                         string
	role                        staticscan.Role
	pointer, accessed, function string
	through                     string
	cell                        string
}{
	{"s", staticscan.RolePointer, "this->conns[i]->head", "this->conns[i]->head->v", "Server::sum(int)", "", "this->conns[i]->head"},
	{"S", staticscan.RolePointer, "this->conns[i]", "this->conns[i]->head", "Server::sum(int)", "", "this->conns[i]"},
	{"f", staticscan.RoleTarget, "this->conns[i]->cb", "", "Server::fire(int)", "", "this->conns[i]->cb"},
	{"v", staticscan.RolePointer, "this->conns[i]->shape", `this->conns[i]->shape->_vptr.*|\*this->conns[i]->shape`, "Server::shape(int)", "", "this->conns[i]->shape"},
	{"d", staticscan.RoleDivisor, "this->conns[i]->divisor", "", "Server::div(int)", "", "this->conns[i]->divisor"},
	{"i", staticscan.RoleIndex, "i", "bigarr[i]", "Server::idx(long)", "", ""},
	{"n", staticscan.RolePointer, "names[i]", "*names[i]", "Server::name(int)", "strlen", "names[i]"},
	{"c", staticscan.RolePointer, "this->conns[i]->head", "*this->conns[i]->head", "Server::copy(int)", "memcpy", ""},
	{"j", staticscan.RoleTarget, "p[1]", "", "jump(void**)", "", "p[1]"},
	{"l", staticscan.RolePointer, "(srv|given)->conns[k]->head", "(srv|given)->conns[k]->head->v", "deep.*|inlined.*", "", "(srv|given)->conns[k]->head"},
}

func matches(pattern, text string) bool {
	if strings.Contains(pattern, "|") {
		pattern = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern)
		return regexp.MustCompile("^(" + pattern + ")$").MatchString(text)
	}
	return pattern == text
}

func TestOrigin(t *testing.T) {
	for _, v := range []struct{ compiler, flags string }{
		{"g++", "-O0"}, {"g++", "-O2"}, {"g++", "-O2 -fno-pie -no-pie -fomit-frame-pointer"}, {"clang++", "-O1"},
	} {
		t.Run(v.compiler+v.flags, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "crash.cc", Text: crashSource, Compiler: v.compiler, Flags: strings.Fields(v.flags)})
			for _, c := range crashes {
				t.Run(c.arg, func(t *testing.T) {
					in := opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{c.arg}}))
					b, scan := both(t, in, staticscan.Options{})
					if b.Role != c.role || !matches(c.pointer, b.Pointer) || !matches(c.accessed, b.Accessed) || !matches(c.function, b.Function) || b.Through != c.through {
						t.Errorf("got %swant %+v", describe(b), c)
					}
					if c.cell != "" && (b.Cell == nil || !matches(c.cell, b.CellName) || !b.CellHolds) {
						t.Fatalf("cell %v %q holds %v, want %q\n%s", b.Cell, b.CellName, b.CellHolds, c.cell, describe(b))
					}
					if c.cell != "" && (len(scan.Suspects) == 0 || scan.Suspects[0].Kind != evidence.SuspectCell || scan.Suspects[0].Address != *b.Cell) {
						t.Errorf("the cell is not the strongest suspect: %+v", scan.Suspects)
					}
				})
			}
		})
	}
}

// The compiler turns a call in last place into a jump: the caller's frame is
// gone, and a value must not be followed into the frame that stands there.
func TestTailCalls(t *testing.T) {
	const source = `
#include <stdlib.h>
#include <string.h>
struct user { char name[16]; void (*greet)(struct user *); long age; };
struct conn { struct conn *next; char *host; };
#define OWN __attribute__((noinline))
static struct conn *pool;
OWN static int measure(struct conn *c) { return c->next->next == 0 ? (int)strlen(c->host) : 0; }
OWN static void greet(struct user *u) { u->greet(u); }
int main(int argc, char **argv) {
	struct user *u = calloc(1, sizeof *u);
	pool = calloc(1, sizeof *pool);
	pool->next = calloc(1, sizeof *pool);
	pool->host = (char *)0x8dcfc7f7edcca015;
	if (argc > 2) memcpy(u->name, "Maximilian Mustermann", 22);
	if (argc > 2) { greet(u); __asm__(""); }
	return measure(pool);
}`
	exe := crashtest.Compile(t, crashtest.Program{Source: "tail.c", Text: source, Flags: []string{"-O2", "-w"}})
	t.Run("argument", func(t *testing.T) {
		b, _ := both(t, opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"x"}})), staticscan.Options{})
		for _, step := range b.Steps {
			if strings.Contains(step.Text, "argv") || strings.Contains(step.Text, "__libc_start") {
				t.Errorf("followed into the wrong frame: %s", describe(b))
			}
		}
		if b.Through != "strlen" {
			t.Errorf("through %q", b.Through)
		}
	})
	t.Run("target", func(t *testing.T) {
		b, _ := both(t, opened(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"x", "y"}})), staticscan.Options{})
		if b.Role != staticscan.RoleTarget || b.Pointer != "u->greet" || b.Cell == nil || !b.CellHolds {
			t.Error(describe(b))
		}
	})
}

// Of two indices the one is told that leads away, whichever stands last.
func TestTwoIndices(t *testing.T) {
	const source = `
#include <stdlib.h>
int grid[16][16];
__attribute__((noinline)) static int pick(long row, long column) { return grid[row][column]; }
int main(int argc, char **argv) { return pick(atol(argv[1]), atol(argv[2])); }`
	for _, v := range []struct{ compiler, flags string }{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "grid.c", Text: source, Compiler: v.compiler, Flags: []string{v.flags}})
		for name, args := range map[string][2]string{"row": {"90000000", "3"}, "column": {"3", "-9000000000"}} {
			value := args[0]
			if name == "column" {
				value = args[1]
			}
			b, _ := both(t, opened(t, crashtest.Core(t, exe, crashtest.Run{Args: args[:]})), staticscan.Options{})
			if b.Role != staticscan.RoleIndex || b.Pointer != name || b.Index != "" && b.Index != value {
				t.Errorf("%s %s: %s", v.compiler, v.flags, describe(b))
			}
		}
	}
}
