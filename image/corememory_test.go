package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"diagnose/evidence"
)

// twoLoads is a core of two adjacent segments. Only half of the first is in the
// file.
func twoLoads() *coreMemory {
	core := &elfCore{data: append(bytes.Repeat([]byte{1}, 0x10), bytes.Repeat([]byte{2}, 0x10)...), loads: []programHeader{
		{vaddr: 0x1000, memsz: 0x20, offset: 0, filesz: 0x10},
		{vaddr: 0x1020, memsz: 0x10, offset: 0x10, filesz: 0x10},
	}}
	return &coreMemory{core: core, process: &Process{Mappings: []Mapping{{Start: 0x1000, End: 0x1030, Perms: "rw-"}}}}
}

// Memory that the core does not hold is an error from its first byte on, never
// other bytes.
func TestReadCore(t *testing.T) {
	for _, c := range []struct {
		name  string
		addr  evidence.Addr
		n     int
		want  []byte
		fails string
	}{
		{"whole", 0x1000, 0x10, bytes.Repeat([]byte{1}, 0x10), ""},
		{"over the end of the kept memory", 0x1008, 0x10, bytes.Repeat([]byte{1}, 8), "is not in the core"},
		{"after the kept memory", 0x1010, 8, nil, "is not in the core"},
		{"over the seam", 0x101c, 8, nil, "is not in the core"},
		{"second", 0x1028, 8, bytes.Repeat([]byte{2}, 8), ""},
		{"over the end", 0x1028, 0x10, bytes.Repeat([]byte{2}, 8), "is not mapped"},
		{"before all", 0xff8, 0x10, nil, "is not mapped"},
	} {
		b := make([]byte, c.n)
		n, err := twoLoads().ReadMemory(c.addr, b)
		if !bytes.Equal(b[:n], c.want) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: % x, %v; want % x, %q", c.name, b[:n], err, c.want, c.fails)
		}
		var missing *MemoryError
		if err != nil && (!errors.As(err, &missing) || missing.Addr != c.addr+evidence.Addr(n)) {
			t.Errorf("%s: %v, want an error about %v", c.name, err, c.addr+evidence.Addr(n))
		}
	}
	cut := twoLoads()
	cut.core.data = cut.core.data[:0x14]
	b := make([]byte, 8)
	if n, err := cut.ReadMemory(0x1020, b); n != 4 || err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("cut core: %d bytes, %v", n, err)
	}
}

func TestInCore(t *testing.T) {
	core := twoLoads().core
	for _, c := range []struct{ start, end, want uint64 }{
		{0x1000, 0x1030, 0x20}, {0x1004, 0x1008, 4}, {0x1008, 0x1024, 12}, {0x1010, 0x1020, 0}, {0, 0x1000, 0}, {0x1030, 0x2000, 0},
	} {
		if got := core.inCore(c.start, c.end); got != c.want {
			t.Errorf("%#x to %#x: %d bytes, want %d", c.start, c.end, got, c.want)
		}
	}
}

// Only writable anonymous memory that the core holds completely shows that the
// core has the written memory.
func TestDumpsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		mapping Mapping
		filesz  uint64
		want    bool
	}{
		"whole":     {Mapping{Start: 0x1000, End: 0x2000, Perms: "rw-"}, 0x1000, true},
		"none":      {Mapping{Start: 0x1000, End: 0x2000, Perms: "rw-"}, 0, false},
		"a part":    {Mapping{Start: 0x1000, End: 0x2000, Perms: "rw-"}, 0x800, false},
		"a file":    {Mapping{Start: 0x1000, End: 0x2000, Perms: "rw-", Path: "/f"}, 0x1000, false},
		"read-only": {Mapping{Start: 0x1000, End: 0x2000, Perms: "r--"}, 0x1000, false},
	} {
		core := &elfCore{loads: []programHeader{{vaddr: 0x1000, memsz: 0x1000, filesz: c.filesz}}}
		if core.findDumpsWritten([]Mapping{c.mapping}); core.dumpsWritten != c.want {
			t.Errorf("%s: %v, want %v", name, core.dumpsWritten, c.want)
		}
	}
}

// put is memory of single words at multiples of 8.
type put map[evidence.Addr]uint64

func (m put) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	v, ok := m[addr&^7]
	if !ok {
		return 0, &MemoryError{Addr: addr, Reason: "is not mapped"}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return copy(p, b[addr&7:]), nil
}

func TestInArena(t *testing.T) {
	const base, arena = 0x7f0000000000, 0x7f0000000020
	good := [4]uint64{arena, 0, 0x21000, 0x22000}
	for name, c := range map[string]struct {
		word int
		v    uint64
		addr evidence.Addr
		want bool
	}{
		"arena":                        {0, arena, base + 0x1000, true},
		"last accessible byte":         {0, arena, base + 0x21fff, true},
		"after the accessible part":    {0, arena, base + 0x22000, false},
		"no arena":                     {0, 0, base + 0x1000, false},
		"arena is not mapped":          {0, 0x1000, base + 0x1000, false},
		"arena is not aligned":         {0, arena + 1, base + 0x1000, false},
		"previous heap is not aligned": {1, 0x1000, base + 0x1000, false},
		"nothing in use":               {2, 0, base + 0x1000, false},
		"more in use than accessible":  {2, 0x23000, base + 0x1000, false},
		"larger than a heap":           {3, arenaSize + 0x1000, base + 0x1000, false},
	} {
		memory := put{}
		for i, v := range good {
			memory[base+evidence.Addr(8*i)] = v
		}
		memory[base+evidence.Addr(8*c.word)] = c.v
		mappings := Mappings{{Start: base, End: base + 0x22000, Perms: "rw-"}}
		if got := inArena(memory, mappings, c.addr); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if inArena(put{}, nil, base) {
		t.Error("memory that cannot be read is an arena")
	}
}

func TestInBigChunk(t *testing.T) {
	m := Mapping{Start: 0x10000, End: 0x16000, Perms: "rw-"}
	first, second := addrRange{0x10000, 0x12000}, addrRange{0x12000, 0x15000}
	sizes := put{0x10008: 0x2002, 0x12008: 0x3002, 0x15008: 0x1001}
	for _, c := range []struct {
		addr evidence.Addr
		want addrRange
	}{
		{0x10010, first}, {0x11fff, first}, {0x12000, second}, {0x14fff, second}, {0x15000, addrRange{}},
	} {
		if got, ok := inBigChunk(sizes, &m, c.addr); got != c.want || ok != (c.want != addrRange{}) {
			t.Errorf("%v: %v, %v; want %v", c.addr, got, ok, c.want)
		}
	}
	for _, size := range []uint64{2, 0x2012, 0x7002} {
		if got, ok := inBigChunk(put{0x10008: size}, &m, 0x10010); ok {
			t.Errorf("a size of %#x made the block %v", size, got)
		}
	}
}

// TestStackAt: of the stacks in one mapping, the one with the nearest stack
// pointer below. Addresses below all stack pointers count only if the whole
// mapping is the stack.
func TestStackAt(t *testing.T) {
	threads := []Thread{{}, {}, {}}
	r := &regions{mappings: Mappings{{Start: 0x10000, End: 0x20000, Perms: "rw-"}, {Start: 0x30000, End: 0x40000, Perms: "rw-"}}}
	r.stacks = []threadStack{
		{thread: &threads[0], mapping: 0, sp: 0x14000},
		{thread: &threads[1], mapping: 0, sp: 0x18000},
		{thread: &threads[2], mapping: 1, sp: 0x38000, whole: true},
	}
	for addr, want := range map[evidence.Addr]*Thread{
		0x13000: nil, 0x14000 - redZone: &threads[0], 0x17000: &threads[0], 0x18000: &threads[1], 0x19000: &threads[1],
		0x31000: &threads[2], 0x39000: &threads[2], 0x50000: nil,
	} {
		if s, ok := r.stackAt(addr); ok != (want != nil) || s.thread != want {
			t.Errorf("%v: found %v", addr, ok)
		}
	}
	r.stacks[0], r.stacks[1] = r.stacks[1], r.stacks[0]
	for addr, want := range map[evidence.Addr]*Thread{0x17000: &threads[0], 0x19000: &threads[1]} {
		if s, _ := r.stackAt(addr); s.thread != want {
			t.Errorf("%v: another thread's with the stacks in the other order", addr)
		}
	}
}

func TestTLSBlocks(t *testing.T) {
	const tcb, dtv = 0x7000, 0x8000
	l := &threadLocals{memory: put{tcb + tcbDTV: dtv, dtv - dtvEntry: 3, dtv + dtvEntry: 0x9000, dtv + 2*dtvEntry: dtvUnallocated, dtv + 3*dtvEntry: 0, dtv + 4*dtvEntry: 0xa000}}
	for index, want := range []evidence.Addr{0, 0x9000, 0, 0, 0} {
		if got, err := l.dynamicBlock(tcb, uint64(index), 0); got != want || (err == nil) != (want != 0) {
			t.Errorf("module %d: %v, %v; want %v", index, got, err, want)
		}
	}
}

func TestStaticBlock(t *testing.T) {
	for _, c := range []struct{ vaddr, memsz, alignm, want uint64 }{
		{0x3000, 0x10, 8, 0x10}, {0x3000, 0x11, 8, 0x18}, {0x3000, 0x10, 64, 64}, {0x3010, 0x20, 64, 0x30}, {0x3000, 4, 0, 4},
	} {
		m := &Module{image: &elfImage{tls: &programHeader{vaddr: c.vaddr, memsz: c.memsz, alignm: c.alignm}}}
		got := (&threadLocals{}).staticBlock(0x10000, m)
		if got != evidence.Addr(0x10000-c.want) || c.alignm != 0 && (uint64(got)-c.vaddr)%c.alignm != 0 {
			t.Errorf("%+v: %v, want %#x below the thread pointer", c, got, c.want)
		}
	}
}

// A thread pointer that does not point to itself, and a C library whose layout
// is not known, give no address.
func TestThreadLocalRefuses(t *testing.T) {
	const tcb = 0x7000
	exe := &Module{Path: "/bin/x", image: &elfImage{tls: &programHeader{memsz: 8, alignm: 8}}}
	var thread Thread
	thread.Registers.FSBase = tcb
	for name, l := range map[string]*threadLocals{
		"good":       {exe: exe, memory: put{tcb: tcb}},
		"not itself": {exe: exe, memory: put{tcb: 1}},
		"unreadable": {exe: exe, memory: put{}},
		"musl":       {exe: exe, memory: put{tcb: tcb}, modules: []*Module{{Path: "/lib/ld-musl-x86_64.so.1"}}},
	} {
		of := exe
		if name == "musl" { // the executable's is where glibc has it
			of = &Module{Path: "/lib/libx.so", image: exe.image}
		}
		if got, err := l.block(&thread, of); (err == nil) != (name == "good") || err == nil && got != tcb-8 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
