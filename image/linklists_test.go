package image

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"diagnose/evidence"
)

// linkLists is a process with a list of two objects and one of one, and its auxiliary vector.
func linkLists() (m *flatMemory, auxv []byte) {
	const base, size = 0x10000, 0x1000
	m = &flatMemory{base: base, data: make([]byte, size)}
	words := func(at int, values ...uint64) {
		for i, v := range values {
			binary.LittleEndian.PutUint64(m.data[at+8*i:], v)
		}
	}
	header := func(at int, kind elf.ProgType, vaddr uint64) {
		words(at, uint64(kind), 0, vaddr, vaddr, 0x38, 0x38, 8)
	}
	header(0x40, elf.PT_PHDR, 0x40)
	header(0x78, elf.PT_DYNAMIC, 0x100)
	words(0x100, uint64(elf.DT_DEBUG), base+0x200, 0, 0)
	words(0x200, 2, base+0x300, 0, 0, 0, base+0x240)
	words(0x240, 2, base+0x380)
	words(0x300, base, base+0x400, base+0x100, base+0x340)
	words(0x340, 0x7000, base+0x410, 0x7100, 0)
	words(0x380, 0x9000, base+0x420, 0x9100, 0)
	copy(m.data[0x410:], "libone.so")
	copy(m.data[0x420:], "libtwo.so")
	return m, auxvBytes(auxPHDR, base+0x40, auxPHNUM, 2, 0, 0)
}

// The lists are those of the moment: there are none before the dynamic linker has made them, and what cannot be read is an error.
func TestLinkedObjects(t *testing.T) {
	m, auxv := linkLists()
	want := []LinkedObject{{0x10300, 0x10000, 0x10100, "", 0x10200}, {0x10340, 0x7000, 0x7100, "libone.so", 0x10200}, {0x10380, 0x9000, 0x9100, "libtwo.so", 0x10240}}
	if got, err := LinkedObjects(m, auxv); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		at     int
		value  uint64
		number int // -1: an error
	}{
		"no dynamic section":        {0x78, uint64(elf.PT_NULL), 0},
		"no DT_DEBUG":               {0x100, 0, 0},
		"no r_debug yet":            {0x108, 0, 0},
		"empty":                     {0x208, 0, 1},
		"old":                       {0x200, 1, 2},
		"lists in a circle":         {0x268, 0x10200, 3},
		"objects in a circle":       {0x358, 0x10300, -1},
		"an object not mapped":      {0x358, 0x90000, -1},
		"a name not mapped":         {0x348, 0x90000, -1},
		"r_debug not mapped":        {0x108, 0x90000, -1},
		"headers do not say where":  {0x40, uint64(elf.PT_NULL), -1},
		"dynamic section elsewhere": {0x88, 0x90000, -1},
	} {
		m, auxv := linkLists()
		binary.LittleEndian.PutUint64(m.data[c.at:], c.value)
		if got, err := LinkedObjects(m, auxv); len(got) != max(c.number, 0) || (err != nil) != (c.number < 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := LinkedObjects(m, auxvBytes(0, 0)); err == nil {
		t.Error("no error without an auxiliary vector")
	}
	if _, err := LinkedObjects(&flatMemory{base: evidence.Addr(0)}, auxv); err == nil {
		t.Error("no error without memory")
	}
}
