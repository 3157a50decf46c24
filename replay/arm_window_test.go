package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"diagnose/image/x86"
)

// windowBase is where the tests' code lies.
const windowBase = 0x555555554000

// windowText is code with so much before and behind it that the search may look
// there, and that has no room for a jump.
func windowText(code ...byte) (text []byte, at uint64) {
	const lead = 1024
	text = append(bytes.Repeat([]byte{0x90}, lead), code...)
	return append(text, bytes.Repeat([]byte{0x50}, lead)...), windowBase + lead
}

func TestFindWindow(t *testing.T) {
	for _, x := range []struct {
		name    string
		code    []byte
		pc      uint64 // of the place, from the code's start
		entries []uint64
		start   uint64
		size    uint64 // 0: no window
		moved   int
		hop     uint64
	}{
		{name: "long enough", code: []byte{0x48, 0x81, 0xc7, 1, 2, 0, 0, 0xc3}, size: 7, moved: 1},
		// add $1, %rdi; cmp %edi, %ebx; jl
		{name: "a branch", code: []byte{0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0x7d, 0xf8}, size: 6, moved: 2},
		{name: "from before", code: []byte{0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0x7d, 0xf8}, pc: 4, entries: []uint64{0, 8}, size: 6, moved: 2},
		// pop %rbx; pop %rbp; pop %r12; pop %r13; ret
		{name: "a return", code: []byte{0xcc, 0x5b, 0x5d, 0x41, 0x5c, 0x41, 0x5d, 0xc3}, pc: 7, start: 3, size: 5, moved: 3, entries: []uint64{8}},
		{name: "what fills the line", code: []byte{0xcc, 0xc3, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, pc: 1, start: 1, size: 6, moved: 1, entries: []uint64{7}},
		{name: "behind a jump", code: []byte{0xcc, 0x5b, 0xc3, 0x55, 0x53, 0x50, 0x51, 0xc3}, pc: 1},
		{name: "entered", code: []byte{0xcc, 0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0xc3}, pc: 1, entries: []uint64{5}},
		// call *%rax returns into it.
		{name: "a call", code: []byte{0xcc, 0xff, 0xd0, 0x48, 0x83, 0xc7, 1, 0xc3}, pc: 1},
		{name: "behind a call", code: []byte{0xcc, 0xff, 0xd0, 0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0xc3}, pc: 3, start: 3, size: 6, moved: 2},
		{name: "rdtsc", code: []byte{0xcc, 0x0f, 0x31, 0x48, 0x83, 0xc7, 1}, pc: 1},
		{name: "syscall", code: []byte{0xcc, 0x48, 0x31, 0xc0, 0x0f, 0x05, 0x90}, pc: 1},
		// inc %eax; jne 1b; a return and what fills the line
		{name: "a hop", code: []byte{0xcc, 0xff, 0xc0, 0x75, 0xfc, 0xc3, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, pc: 1, start: 1, size: 2, moved: 1,
			entries: []uint64{1, 3, 5, 11}, hop: 6},
		// The same, with what fills the line out of a short jump's reach.
		{name: "a hop too far", code: slices.Concat([]byte{0xc3, 0x0f, 0x1f, 0x44, 0, 0}, bytes.Repeat([]byte{0x50}, 130), []byte{0xff, 0xc0, 0x75, 0xfc, 0xc3}),
			pc: 136, entries: []uint64{136, 138, 140}},
	} {
		text, at := windowText(x.code...)
		var entries []uint64
		for _, e := range x.entries {
			entries = append(entries, at+e)
		}
		w := findWindow(text, windowBase, at+x.pc, entries)
		switch {
		case x.size == 0 && w != nil:
			t.Errorf("%s: window %#x to %#x, want none", x.name, w.start-at, w.end-at)
		case x.size != 0 && w == nil:
			t.Errorf("%s: no window", x.name)
		case w == nil:
		case w.start-at != x.start || w.end-w.start != x.size || len(w.moved) != x.moved:
			t.Errorf("%s: window at %d of %d bytes, %d instructions; want %d, %d, %d", x.name, w.start-at, w.end-w.start, len(w.moved), x.start, x.size, x.moved)
		case w.hop != 0 != (x.hop != 0) || w.hop != 0 && w.hop-at != x.hop:
			t.Errorf("%s: the hop is at %#x, want %#x", x.name, w.hop, at+x.hop)
		}
	}
}

func TestEntries(t *testing.T) {
	// 0: jmp 8; 2: call 16; 7: nop; 8: jne 12 (32 bits); 14: jmp 20, and a lea of 24.
	text, at := windowText(0xeb, 6, 0xe8, 9, 0, 0, 0, 0x90, 0x0f, 0x85, 0xfe, 0xff, 0xff, 0xff, 0xeb, 4, 0x48, 0x8d, 0x05, 1, 0, 0, 0, 0x90)
	s := entrySearch{spans: []span{{at, at + 64}}}
	s.shortJumps(text, windowBase, at+14)
	s.longJumps(text, windowBase)
	table := binary.LittleEndian.AppendUint64(nil, at+40)
	s.tables(table, windowBase+1<<20, span{windowBase, windowBase + uint64(len(text))})
	want := []uint64{at + 8, at + 12, at + 16, at + 20, at + 24, at + 40}
	if got := s.sorted(); !slices.Equal(got, want) {
		t.Errorf("entries %#x, want %#x", got, want)
	}

	// Offsets from the table's own start: five entries, all of them code.
	var offsets []byte
	const tableAt = windowBase + 1<<20
	for i := range uint64(5) {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(at+8*i-tableAt))
	}
	s = entrySearch{spans: []span{{at + 20, at + 30}}}
	s.tables(offsets, tableAt, span{windowBase, windowBase + uint64(len(text))})
	if got := s.sorted(); !slices.Contains(got, at+24) {
		t.Errorf("entries of a table %#x, want %#x among them", got, at+24)
	}
}

func TestMovedInstructions(t *testing.T) {
	const pc, page = windowBase + 0x100, windowBase + 0x100000
	for _, x := range []struct {
		name string
		code []byte
		op   string // of the last moved one
	}{
		{"mov 0x10(%rip), %eax", []byte{0x8b, 0x05, 0x10, 0, 0, 0}, "mov"},
		{"cmpl $1, 0x10(%rip)", []byte{0x83, 0x3d, 0x10, 0, 0, 0, 1}, "cmp"},
		{"jmp *0x10(%rip)", []byte{0xff, 0x25, 0x10, 0, 0, 0}, "jmp"},
		{"call *0x10(%rip)", []byte{0xff, 0x15, 0x10, 0, 0, 0}, "jmp"},
	} {
		inst, err := x86.Decode(x.code, pc)
		if err != nil {
			t.Fatal(err)
		}
		a := &assembler{page: page}
		if err := a.move(&inst); err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var last x86.Inst
		for at := 0; at < a.Len(); at += last.Len {
			if last, err = x86.Decode(a.Bytes()[at:], page+uint64(at)); err != nil {
				t.Fatalf("%s: %x: %v", x.name, a.Bytes(), err)
			}
		}
		addr := uint64(0)
		for _, o := range last.Operands {
			if o.IsMemory && o.Memory.Base == x86.RIP {
				addr = last.PC + uint64(last.Len) + uint64(o.Memory.Disp)
			}
		}
		if want := pc + uint64(len(x.code)) + 0x10; last.Op != x.op || addr != want {
			t.Errorf("%s: moved as %x, %s of %#x, want %s of %#x", x.name, a.Bytes(), last.Op, addr, x.op, want)
		}
	}

	// The displacement's bytes are the immediate's too: which is which?
	inst, err := x86.Decode([]byte{0x81, 0x3d, 4, 3, 2, 1, 4, 3, 2, 1}, pc)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&assembler{page: page}).move(&inst); !errors.Is(err, errNoProbe) {
		t.Errorf("an instruction that cannot be told apart was moved: %v", err)
	}
}

func TestMovedBranches(t *testing.T) {
	const pc, page = windowBase + 0x100, windowBase + 0x100000
	for name, code := range map[string][]byte{"jmp": {0xeb, 0x10}, "jne": {0x75, 0x10}, "jrcxz": {0xe3, 0x10}, "loop": {0xe2, 0x10},
		"jmp far": {0xe9, 0x10, 0, 0, 0}, "je far": {0x0f, 0x84, 0x10, 0, 0, 0}, "call": {0xe8, 0x10, 0, 0, 0}} {
		inst, err := x86.Decode(code, pc)
		if err != nil {
			t.Fatal(err)
		}
		a := &assembler{page: page}
		if err := a.move(&inst); err != nil || !movable(&inst) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// The displacement is what the moved form ends with.
		n := a.Len()
		to := page + uint64(n) + uint64(int64(int32(binary.LittleEndian.Uint32(a.Bytes()[n-4:]))))
		if want := pc + uint64(len(code)) + 0x10; to != want {
			t.Errorf("%s leads to %#x, want %#x", name, to, want)
		}
	}
}
