package driver_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// mallocHeap sums up malloc's heap in a core.
func mallocHeap(t *testing.T, core string) *evidence.Heap {
	t.Helper()
	h, err := driver.Heap(context.Background(), driver.Request{Core: core}, driver.HeapOptions{Sites: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	return h
}

// lost are the numbers of direct and of indirect leaks that the first line of a program names.
func lost(t *testing.T, source string) (direct, indirect uint64) {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "// LOST %d %d:", &direct, &indirect); err != nil {
		t.Fatal(err)
	}
	return direct, indirect
}

// TestLeaks: the objects that each program loses are unreachable, and only these; the program that keeps them has none.
func TestLeaks(t *testing.T) {
	sources, err := filepath.Glob("testdata/leaks/*.c*")
	if err != nil || len(sources) < 8 {
		t.Fatal(sources, err)
	}
	builds := []struct{ c, cxx, level string }{{"gcc", "g++", "-O1"}}
	if os.Getenv("DIAGNOSE_MATRIX") == "full" {
		builds = append(builds, []struct{ c, cxx, level string }{{"gcc", "g++", "-O0"}, {"gcc", "g++", "-O2"}, {"clang", "clang++", "-O1"}, {"clang", "clang++", "-O0"}}...)
	}
	for _, source := range sources {
		for _, b := range builds {
			compiler := b.c
			if strings.HasSuffix(source, ".cc") {
				compiler = b.cxx
			}
			t.Run(fmt.Sprintf("%s/%s%s", filepath.Base(source), compiler, b.level), func(t *testing.T) {
				exe := crashtest.Compile(t, crashtest.Program{Source: source, Compiler: compiler, Flags: []string{b.level, "-w", "-pthread"}})
				checkLeaks(t, source, exe, b.c == "gcc")
			})
		}
	}
}

// checkLeaks compares the leaks with those that the source names. Code of clang may have a copy of the last pointer in a register: then that object is
// reachable.
func checkLeaks(t *testing.T, source, exe string, all bool) {
	t.Helper()
	l := mallocHeap(t, crashtest.Core(t, exe, crashtest.Run{})).Malloc.Leaks
	direct, indirect := lost(t, source)
	switch {
	case l == nil:
		t.Error("what leaks is not known")
	case all && (l.Direct != direct || l.Indirect != indirect), l.Direct > direct, l.Indirect > indirect, l.Direct+1 < direct:
		t.Errorf("%d objects lost, which lead to %d; want %d and %d", l.Direct, l.Indirect, direct, indirect)
	}
	if l := mallocHeap(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{"fixed"}})).Malloc.Leaks; l == nil || l.Direct != 0 {
		t.Errorf("the fixed program: %+v", l)
	}
}

// hidden has pointers in memory that cores do not have: a shared file and memory that is excluded. Nothing is lost but one object.
const hidden = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) static void *area(int how, int fd) { return mmap(NULL, 8192, PROT_READ | PROT_WRITE, how, fd, 0); }
__attribute__((noinline)) static void *make(size_t n) { return calloc(1, n); }
void **volatile kept[2];
int main(int argc, char **argv)
{
	void **p;
	if (argv[1][0] == 'f') {
		int fd = open(argv[2], O_RDWR | O_CREAT, 0600); // one that is unlinked counts as memory without a file
		if (ftruncate(fd, 8192))
			return 1;
		p = area(MAP_SHARED, fd);
	} else {
		p = area(MAP_PRIVATE | MAP_ANONYMOUS, -1);
		madvise(p, 8192, MADV_DONTDUMP);
	}
	kept[0] = p;
	p[3] = make(500);
	p[4] = make(600);
	make(70);
	abort();
}
`

// TestHiddenPointers: where memory is missing that may have pointers, nothing is called unreachable without saying so.
func TestHiddenPointers(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "hidden.c", Text: hidden, Flags: []string{"-O0", "-w"}})
	for how, code := range map[string]evidence.LimitCode{"file": evidence.LimitMissingMemory, "excluded": evidence.LimitUnwrittenMemory} {
		h := mallocHeap(t, crashtest.Core(t, exe, crashtest.Run{Args: []string{how, filepath.Join(t.TempDir(), "shared")}}))
		if l := h.Malloc.Leaks; l == nil || l.Direct == 0 || l.Missing+l.Unwritten < 8192 {
			t.Errorf("%s: %+v", how, l)
		}
		if evidence.LimitOf(h.Limits, code) == nil {
			t.Errorf("%s: %+v", how, h.Limits)
		}
	}
}

// typed makes objects whose types follow from what points to them.
const typed = `
#include <cstdlib>
#include <cstring>
#include <pthread.h>
struct Shape { virtual ~Shape() {} long id = 3; double w[6] = {}; };
struct Circle : Shape { double r[9] = {}; };
struct node { node *next; char text[50]; };
struct base { long kind; };
struct derived { base b; double rest[11]; };
struct record { node *first; char *name; int *numbers; base *any; long more[30]; };
record *global;
Shape *volatile shape;
static thread_local record *mine;
__attribute__((noinline)) static void *make(size_t n) { return calloc(1, n); }
int main()
{
	global = (record *)make(sizeof(record));
	for (int i = 0; i < 10; i++) {
		node *x = (node *)make(sizeof *x);
		x->next = global->first;
		global->first = x;
	}
	global->name = strdup("a name of some length, to be told");
	global->numbers = (int *)make(100 * sizeof(int));
	global->any = (base *)make(sizeof(derived));
	shape = new Circle;
	mine = (record *)make(sizeof(record));
	node **table = (node **)make(40 * sizeof *table);
	table[7] = (node *)make(sizeof(node));
	void *unknown = make(5000);
	strcpy((char *)make(600), "text that nothing has a type for");
	if (unknown && table)
		abort();
}
`

// TestTypes: types by vtable, by typed globals, thread-local variables and locals, and by typed members of typed objects.
func TestTypes(t *testing.T) {
	for _, compiler := range []string{"g++", "clang++"} {
		t.Run(compiler, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "typed.cc", Text: typed, Compiler: compiler, Flags: []string{"-O0", "-w"}})
			h := mallocHeap(t, crashtest.Core(t, exe, crashtest.Run{}))
			want := map[string]string{
				"record": "2 one pointer", "node": "11 one pointer", "char": "1 array pointer", "int": "1 array pointer", "base": "1 beginning pointer",
				"Circle": "1 one vtable", "node *": "1 array pointer", "text": "1  text",
			}
			for i := range h.Malloc.Types {
				x := &h.Malloc.Types[i]
				if w, known := want[x.Name]; known && fmt.Sprintf("%d %s %s", x.Objects, x.Shape, x.Basis) == w && x.Proof == evidence.Inferred {
					delete(want, x.Name)
				} else if x.Name != "" {
					t.Errorf("%+v", x)
				}
			}
			if len(want) > 0 {
				t.Errorf("no %v", want)
			}
			checkLargest(t, h)
		})
	}
}

func checkLargest(t *testing.T, h *evidence.Heap) {
	t.Helper()
	for i := range h.Malloc.Largest {
		if o := &h.Malloc.Largest[i]; o.Size == 5000 {
			if o.Holder == nil || o.Holder.Kind != evidence.HolderVariable || o.Holder.Name != "main's unknown" || o.Type.Name != "" {
				t.Errorf("%+v %+v", o, o.Holder)
			}
			return
		}
	}
	t.Errorf("%+v: no object of 5000 bytes", h.Malloc.Largest)
}

// TestGarbageInMalloc: whatever the headers and links of malloc's heap are, the summary ends soon, in a sound one or in an error.
func TestGarbageInMalloc(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/leaks/threads.c", Flags: []string{"-O1", "-w", "-pthread"}})
	core := crashtest.Core(t, exe, crashtest.Run{})
	whole, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	var writable []*elf.Prog
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 && p.Filesz > 0 {
			writable = append(writable, p)
		}
	}
	random := rand.New(rand.NewPCG(7, 1))
	for n := range 30 {
		bad := bytes.Clone(whole)
		for range 1 << (n % 12) {
			p := writable[random.IntN(len(writable))]
			at := p.Off + random.Uint64N(min(p.Filesz, 1<<12)/8)*8
			values := []uint64{0, ^uint64(0), 1 << 63, p.Vaddr, p.Vaddr + p.Memsz, p.Vaddr&^(64<<20-1) | 0x30, p.Memsz | 1, random.Uint64() & 0xffff, 0x21, 1 << 40}
			binary.LittleEndian.PutUint64(bad[at:], values[random.IntN(len(values))])
		}
		path := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		h, err := driver.Heap(context.Background(), driver.Request{Core: path, Exe: exe}, driver.HeapOptions{Sites: 20})
		var input *driver.InputError
		switch {
		case err != nil && !errors.As(err, &input):
			t.Errorf("%d: %v", n, err)
		case err == nil && h.Check() != nil:
			t.Errorf("%d: %v", n, h.Check())
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%d took %v", n, took)
		}
	}
}
