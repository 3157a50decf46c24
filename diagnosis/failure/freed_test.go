package failure

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
)

const freedSource = `
#include <pthread.h>
#include <stdlib.h>
char *blocks[7];
int freed;
static void *work(void *unused) {
	blocks[4] = malloc(100);
	blocks[5] = malloc(100);
	free(blocks[4]);
	__atomic_store_n(&freed, 1, __ATOMIC_RELEASE);
	for (;;) {}
}
int main(void) {
	pthread_t t;
	for (int i = 0; i < 4; i++) blocks[i] = malloc(i ? 1000 : 24);
	blocks[6] = malloc(100000);
	pthread_create(&t, 0, work, 0);
	free(blocks[0]); free(blocks[1]); free(blocks[2]); free(blocks[6]);
	while (!__atomic_load_n(&freed, __ATOMIC_ACQUIRE)) {}
	abort();
}`

func TestFreed(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "freed.c", Text: freedSource, Flags: []string{"-O1", "-w", "-pthread"}})
	p, err := image.OpenCore(crashtest.Core(t, exe, crashtest.Run{}), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sym, ok := p.SymbolNamed("blocks")
	if !ok {
		t.Fatal("no symbol blocks")
	}
	for i, size := range []int{24, 1000, 1000, 0, 104, 0, 0} {
		at, err := readPointer(p, sym.Addr+evidence.Addr(8*i))
		if err != nil {
			t.Fatal(err)
		}
		b, ok := Freed(p, at+17)
		if ok != (size > 0) || ok && (b.Addr != at || b.Size != size) {
			t.Errorf("block %d at %v: %+v, %v; want a size of %d", i, at, b, ok, size)
		}
		if b, ok := Freed(p, at-1); ok && b.Addr == at {
			t.Errorf("block %d holds the bytes before it", i)
		}
	}
}

// Lists that a program overwrote end the walk and find nothing false.
func TestFreedHostile(t *testing.T) {
	const start = 0x10000
	memory := make([]byte, 0x2000)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(memory[at:], v) }
	put(8, 0x291)
	for i := range tcacheLists {
		binary.LittleEndian.PutUint16(memory[16+2*i:], 0xffff)
		put(16+128+8*i, start+0x1000)
	}
	put(0x1000, uint64(start+0x1000)) // a cycle, without safe linking
	mem := &fake{}
	mem.addMapping(start, "rw-", memory, "")
	if b, ok := freedIn(mem, mem.mappings, start+0x1ff0); ok {
		t.Errorf("found %+v", b)
	}
	if b, ok := freedIn(mem, mem.mappings, start+0x1008); !ok || b.Size != 24 {
		t.Errorf("found %+v, %v", b, ok)
	}
	put(0x1000, 0x4141414141414141)
	if b, ok := freedIn(mem, mem.mappings, start+0x1ff0); ok {
		t.Errorf("found %+v", b)
	}
}
