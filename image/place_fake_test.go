package image

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// placeProcess has a first thread on a stack of 64 KiB, a second one on a stack of
// its own above a guard, and a heap.
func placeProcess() *Process {
	p := &Process{memory: put{}, Threads: make([]Thread, 2), Mappings: []Mapping{
		{Start: 0x5000_0000_0000, End: 0x5000_0002_0000, Perms: "rw-", Path: "[heap]"},
		{Start: 0x5100_0000_0000, End: 0x5100_0000_1000, Perms: "rw-"},
		{Start: 0x7f00_0000_0000, End: 0x7f00_0000_1000, Perms: "---"},
		{Start: 0x7f00_0000_1000, End: 0x7f00_0080_0000, Perms: "rw-"},
		{Start: 0x7f10_0000_0000, End: 0x7f10_0000_1000, Perms: "---"},
		{Start: 0x7ffe_ffff_0000, End: 0x7fff_0000_0000, Perms: "rw-", Path: "[stack]"},
	}}
	p.Program.PID = 7
	for i, sp := range []uint64{0x7ffe_ffff_8000, 0x7f00_0070_0000} {
		p.Threads[i].Ref = evidence.ThreadRef{Number: i + 1, TID: 7 + i}
		p.Threads[i].Registers.Set(RSP, sp)
	}
	p.Threads[1].Registers.FSBase = 0x7f00_007f_f000
	return p
}

func TestPlacesBesideMappings(t *testing.T) {
	const stack = 0x7ffe_ffff_0000
	for name, c := range map[string]struct {
		addr  evidence.Addr
		limit uint64
		class evidence.PlaceClass
		proof evidence.Proof
		text  string
	}{
		"guard of the thread":           {0x7f00_0000_0800, 0, evidence.PlaceStackGuard, evidence.FromCore, "guard below the stack of thread 2"},
		"another inaccessible page":     {0x7f10_0000_0800, 0, evidence.PlaceInaccessible, evidence.FromCore, "without any permission"},
		"past the heap":                 {0x5000_0002_0008, 0, evidence.PlaceUnmapped, evidence.FromCore, "8 bytes past the heap"},
		"past anonymous memory":         {0x5100_0000_1008, 0, evidence.PlaceUnmapped, evidence.FromCore, "8 bytes past anonymous memory"},
		"where blocks are mapped":       {0x7f0f_ffff_e010, 0, evidence.PlaceFreedMapping, evidence.Inferred, "large block that was freed"},
		"16 bytes, but not there":       {0x5100_0000_2010, 0, evidence.PlaceUnmapped, evidence.FromCore, "not mapped"},
		"16 bytes, too far away":        {0x7f01_0000_0010, 0, evidence.PlaceUnmapped, evidence.FromCore, "not mapped"},
		"below the stack":               {stack - 0x1000, 0, evidence.PlaceStackGuard, evidence.Inferred, "below the stack of thread 1"},
		"within the usual limit":        {stack + 0x10000 - 8<<20, 0, evidence.PlaceStackGuard, evidence.Inferred, "below the stack"},
		"beyond the usual limit":        {stack + 0x10000 - 8<<20 - 257*pageSize, 0, evidence.PlaceUnmapped, evidence.FromCore, "not mapped"},
		"within a limit that is known":  {stack + 0x10000 - 16<<20, 16 << 20, evidence.PlaceStackGuard, evidence.FromCore, "below the stack"},
		"a limit that tells nothing":    {stack + 0x10000 - 16<<20, 1 << 40, evidence.PlaceUnmapped, evidence.FromCore, "not mapped"},
		"another mapping is between":    {0x7f0f_ffff_ff00, 1 << 30, evidence.PlaceUnmapped, evidence.FromCore, "not mapped"},
		"below the mapping of the heap": {0x4fff_ffff_f000, 0, evidence.PlaceUnmapped, evidence.FromCore, "before the heap"},
	} {
		p := placeProcess()
		p.stackLimit = c.limit
		place := p.Place(c.addr)
		if place.Class != c.class || place.Proof != c.proof || !strings.Contains(place.Text, c.text) {
			t.Errorf("%s: %s (%s) %q; want %s (%s) %q", name, place.Class, place.Proof, place.Text, c.class, c.proof, c.text)
		}
	}
}

// Heaps that malloc mapped are known by their contents: inferred.
func TestHeapsByContents(t *testing.T) {
	const arena, big = 0x7e00_0000_0000, 0x7d00_0000_0000
	p := placeProcess()
	p.Mappings = append([]Mapping{{Start: big, End: big + 0x3000, Perms: "rw-"}, {Start: arena, End: arena + 0x21000, Perms: "rw-"}}, p.Mappings[2:]...)
	p.memory = put{arena: arena + 0x20, arena + 8: 0, arena + 16: 0x1000, arena + 24: 0x21000, big + 8: 0x3002}
	for addr, text := range map[evidence.Addr]string{arena + 0x100: "in the malloc arena", big + 0x100: "malloc mapped for itself"} {
		place := p.Place(addr)
		if place.Class != evidence.PlaceHeap || place.Proof != evidence.Inferred || !strings.Contains(place.Text, text) {
			t.Errorf("%v: %s (%s) %q", addr, place.Class, place.Proof, place.Text)
		}
	}
}

// TestGuardBelow: a guard ends where its stack begins and permits nothing.
func TestGuardBelow(t *testing.T) {
	for name, c := range map[string]struct {
		below Mapping
		want  int
	}{
		"guard":          {Mapping{Start: 0x1000, End: 0x2000, Perms: "---"}, 0},
		"not adjacent":   {Mapping{Start: 0x1000, End: 0x1800, Perms: "---"}, -1},
		"readable":       {Mapping{Start: 0x1000, End: 0x2000, Perms: "r--"}, -1},
		"not known":      {Mapping{Start: 0x1000, End: 0x2000, Perms: unknownPerms}, -1},
		"part of a file": {Mapping{Start: 0x1000, End: 0x2000, Perms: "---", Path: "/lib/x.so"}, -1},
	} {
		list := Mappings{c.below, {Start: 0x2000, End: 0x3000, Perms: "rw-"}}
		if got := list.guardBelow(1); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestHeapBehindExecutable: without a name or a program break the heap is the
// mapping that follows the executable within the kernel's gap.
func TestHeapBehindExecutable(t *testing.T) {
	for gap, found := range map[evidence.Addr]bool{0x1000: true, 32<<20 - 0x1000: true, 32 << 20: false} {
		start := 0x402000 + gap
		p := &Process{memory: put{}, Mappings: []Mapping{{Start: 0x400000, End: 0x402000, Perms: "r-x", Path: "/bin/x"}, {Start: start, End: start + 0x1000, Perms: "rw-"}}}
		p.Exe = &Module{Path: "/bin/x", Start: 0x400000, End: 0x402000}
		if got := (&regions{process: p, mappings: p.Mappings}).findHeap(); (got.start == start) != found {
			t.Errorf("%#x bytes past the executable: %v, want found %v", uint64(gap), got, found)
		}
	}
}
