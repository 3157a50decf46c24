package image

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// placesSource collects addresses of every kind and crashes.
const placesSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
struct cfg { int a[8]; } cfg = {{1}};
int zeroed[100];
const int constant[4] = {1, 2, 3, 4};
const char *const relocated[2] = {"x", "y"};
enum { GLOBAL, BSS, CONSTANT, RELRO, CODE, HEAP, ARENA, BIG, FREED, LOCAL, OTHER, GUARD, FILE_, NONE, SHARED, EXEC, END };
void *places[END];
static pthread_barrier_t barrier;
static void *waits(void *arg)
{
	char local[100];
	pthread_attr_t attr;
	void *stack;
	size_t size;
	places[OTHER] = local + 10;
	places[ARENA] = malloc(100);
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &stack, &size);
	places[GUARD] = (char *)stack - 100;
	pthread_barrier_wait(&barrier);
	sleep(100);
	return local[0] ? arg : 0;
}
int main(void)
{
	int local[10];
	pthread_t t;
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t, 0, waits, 0);
	pthread_barrier_wait(&barrier);
	places[GLOBAL] = &cfg.a[3];
	places[BSS] = zeroed;
	places[CONSTANT] = (void *)&constant[1];
	places[RELRO] = (void *)relocated;
	places[CODE] = (char *)main + 5;
	places[HEAP] = malloc(50);
	places[BIG] = (char *)malloc(1 << 20) + 5000;
	places[FREED] = malloc(4 << 20);
	free(places[FREED]);
	places[LOCAL] = local + 2;
	int fd = open(FILENAME, O_RDONLY);
	places[FILE_] = (char *)mmap(0, 8192, PROT_READ, MAP_PRIVATE, fd, 4096) + 16;
	places[NONE] = mmap(0, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	places[SHARED] = mmap(0, 1 << 16, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	places[EXEC] = mmap(0, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile int *)8 = local[0];
}
`

func TestPlaces(t *testing.T) {
	crashtest.NeedKernelCores(t)
	data := path(t, "data")
	copyFile(t, "/bin/true", data)
	exe := compileText(t, "places.c", placesSource, "-pthread", "-DFILENAME=\""+data+"\"")
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	places, ok := p.SymbolNamed("places")
	if !ok {
		t.Fatal("no symbol places")
	}
	for i, c := range []struct {
		class evidence.PlaceClass
		text  string
	}{
		{evidence.PlaceGlobal, "12 bytes into the global cfg (section .data of places)"},
		{evidence.PlaceGlobal, "the global zeroed (section .bss of places)"},
		{evidence.PlaceReadOnly, "4 bytes into the constant constant (section .rodata of places)"},
		{evidence.PlaceReadOnly, "the constant relocated (section .data.rel.ro of places)"},
		{evidence.PlaceCode, "5 bytes into the function main (section .text of places)"},
		{evidence.PlaceHeap, " bytes from its start"},
		{evidence.PlaceHeap, "on the heap, in the malloc arena at 0x"},
		{evidence.PlaceHeap, "in a block of 0x101000 bytes that malloc mapped for itself"},
		{evidence.PlaceFreedMapping, "probably a large block that was freed"},
		{evidence.PlaceStack, "on the stack of thread 1, "},
		{evidence.PlaceStack, "on the stack of thread 2, "},
		{evidence.PlaceStackGuard, "in the guard below the stack of thread 2, 100 bytes below its end"},
		{evidence.PlaceMappedFile, "in the mapped file " + data + " at offset 0x1010"},
		{evidence.PlaceInaccessible, "mapped without any permission"},
		{evidence.PlaceAnonymous, "in shared anonymous memory (r--)"},
		{evidence.PlaceCode, "in anonymous memory (r-x)"},
	} {
		word, err := Uint64(p, places.Addr+evidence.Addr(8*i))
		if err != nil {
			t.Fatal(err)
		}
		place := p.Place(evidence.Addr(word))
		if place.Class != c.class || !strings.Contains(place.Text, c.text) {
			t.Errorf("%d: %v is %s: %s; want %s: %s", i, place.Addr, place.Class, place.Text, c.class, c.text)
		}
		if !place.Proof.Valid() || place.Class == evidence.PlaceFreedMapping && place.Proof != evidence.Inferred {
			t.Errorf("%d: proof %q", i, place.Proof)
		}
	}
	checkFixedPlaces(t, p)
}

func checkFixedPlaces(t *testing.T, p *Process) {
	t.Helper()
	stack := p.MappingAt(p.Threads[0].Registers.SP())
	for addr, c := range map[evidence.Addr]struct {
		class evidence.PlaceClass
		text  string
	}{
		0:                                     {evidence.PlaceNearNull, "the null pointer"},
		0x18:                                  {evidence.PlaceNearNull, "at offset 0x18 from a null pointer"},
		0x6161616161616161:                    {evidence.PlaceNonCanonical, "non-canonical"},
		0xffff_8880_0000_0000:                 {evidence.PlaceKernel, "kernel"},
		0x1000_0000:                           {evidence.PlaceUnmapped, "before "},
		p.Exe.End + 8:                         {evidence.PlaceUnmapped, "8 bytes past places's data"},
		stack.Start - 0x1000:                  {evidence.PlaceStackGuard, "0x1000 bytes below the stack of thread 1"},
		stack.Start - (1 << 30):               {evidence.PlaceUnmapped, "before "},
		evidence.Addr(p.Auxv[auxSysinfoEHDR]): {evidence.PlaceVDSO, "[vdso]"},
	} {
		place := p.Place(addr)
		if place.Class != c.class || !strings.Contains(place.Text, c.text) {
			t.Errorf("%v is %s: %s; want %s: %s", addr, place.Class, place.Text, c.class, c.text)
		}
	}
}

// TestPlaceOfStackOverflow tests the addresses at which stacks end.
func TestPlaceOfStackOverflow(t *testing.T) {
	crashtest.NeedKernelCores(t)
	const source = `
#include <pthread.h>
static int deep(int n) { volatile char space[1000]; space[n % 1000] = 1; return deep(n + 1) + space[0]; }
static void *start(void *arg) { deep(0); return arg; }
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1)
		deep(0);
	pthread_create(&t, 0, start, 0);
	pthread_join(t, 0);
}`
	exe := compileText(t, "deep.c", source, "-pthread", "-O0")
	for _, args := range [][]string{nil, {"main"}} {
		p := open(t, crashtest.Core(t, exe, crashtest.Run{Args: args}), Options{})
		failing := p.Threads[p.Failing]
		place := p.Place(failing.Signal.Addr)
		if place.Class != evidence.PlaceStackGuard || place.TID != failing.Ref.TID {
			t.Errorf("%q: %v is %s: %s", args, place.Addr, place.Class, place.Text)
		}
	}
}

// TestPlaceOnSignalStack: the thread's own stack is known even while its stack
// pointer is elsewhere.
func TestPlaceOnSignalStack(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := compileText(t, "altstack.c", `
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
void *own;
static void handler(int s) { (void)s; abort(); }
static void *start(void *arg)
{
	static char space[65536];
	stack_t ss = {.ss_sp = space, .ss_size = sizeof space};
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	int local;
	own = &local;
	sigaltstack(&ss, 0);
	sigaction(SIGUSR1, &sa, 0);
	raise(SIGUSR1);
	return arg;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, start, 0);
	pthread_join(t, 0);
}`, "-pthread")
	p := open(t, crashtest.Core(t, exe, crashtest.Run{}), Options{})
	s, ok := p.SymbolNamed("own")
	if !ok {
		t.Fatal("no symbol own")
	}
	word, err := Uint64(p, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	failing := p.Threads[p.Failing]
	place := p.Place(evidence.Addr(word))
	if place.Class != evidence.PlaceStack || place.TID != failing.Ref.TID || !strings.Contains(place.Text, "elsewhere") {
		t.Errorf("%s: %s", place.Class, place.Text)
	}
	if place := p.Place(failing.Registers.SP()); place.Class != evidence.PlaceGlobal {
		t.Errorf("the signal stack is %s: %s", place.Class, place.Text)
	}
}
