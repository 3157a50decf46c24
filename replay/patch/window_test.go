package patch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// windowBase is the address of the tests' code.
const windowBase = 0x555555554000

// windowText surrounds code with as many bytes as the search may read. They have no room for a
// jump.
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
		{name: "after a jump", code: []byte{0xcc, 0x5b, 0xc3, 0x55, 0x53, 0x50, 0x51, 0xc3}, pc: 1},
		{name: "entered", code: []byte{0xcc, 0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0xc3}, pc: 1, entries: []uint64{5}},
		// call *%rax returns into it.
		{name: "a call", code: []byte{0xcc, 0xff, 0xd0, 0x48, 0x83, 0xc7, 1, 0xc3}, pc: 1},
		{name: "after a call", code: []byte{0xcc, 0xff, 0xd0, 0x48, 0x83, 0xc7, 1, 0x39, 0xfb, 0xc3}, pc: 3, start: 3, size: 6, moved: 2},
		{name: "rdtsc", code: []byte{0xcc, 0x0f, 0x31, 0x48, 0x83, 0xc7, 1}, pc: 1},
		{name: "syscall", code: []byte{0xcc, 0x48, 0x31, 0xc0, 0x0f, 0x05, 0x90}, pc: 1},
		// inc %eax; jne 1b; a return and padding
		{name: "a hop", code: []byte{0xcc, 0xff, 0xc0, 0x75, 0xfc, 0xc3, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, pc: 1, start: 1, size: 2, moved: 1,
			entries: []uint64{1, 3, 5, 11}, hop: 6},
		// The same, with the padding out of a short jump's reach.
		{name: "a hop too far", code: slices.Concat([]byte{0xc3, 0x0f, 0x1f, 0x44, 0, 0}, bytes.Repeat([]byte{0x50}, 130), []byte{0xff, 0xc0, 0x75, 0xfc, 0xc3}),
			pc: 136, entries: []uint64{136, 138, 140}},
	} {
		text, at := windowText(x.code...)
		var entries []uint64
		for _, e := range x.entries {
			entries = append(entries, at+e)
		}
		w := FindWindow(text, windowBase, at+x.pc, entries)
		switch {
		case x.size == 0 && w != nil:
			t.Errorf("%s: window %#x to %#x, want none", x.name, w.Start-at, w.End-at)
		case x.size != 0 && w == nil:
			t.Errorf("%s: no window", x.name)
		case w == nil:
		case w.Start-at != x.start || w.End-w.Start != x.size || len(w.Moved) != x.moved:
			t.Errorf("%s: window at %d of %d bytes, %d instructions; want %d, %d, %d", x.name, w.Start-at, w.End-w.Start, len(w.Moved), x.start, x.size, x.moved)
		case w.Hop != 0 != (x.hop != 0) || w.Hop != 0 && w.Hop-at != x.hop:
			t.Errorf("%s: the hop is at %#x, want %#x", x.name, w.Hop, at+x.hop)
		}
	}
}

// isCode covers a text that begins at windowBase.
func isCode(a uint64) bool { return a >= windowBase && a < windowBase+4096 }

func TestEntries(t *testing.T) {
	// 0: jmp 8; 2: call 16; 7: nop; 8: jne 12 (32 bits); 14: jmp 20, and a lea of 24.
	text, at := windowText(0xeb, 6, 0xe8, 9, 0, 0, 0, 0x90, 0x0f, 0x85, 0xfe, 0xff, 0xff, 0xff, 0xeb, 4, 0x48, 0x8d, 0x05, 1, 0, 0, 0, 0x90)
	s := EntrySearch{spans: []span{{at, at + 64}}}
	s.ShortJumps(text, windowBase, at+14)
	s.LongJumps(text, windowBase)
	table := binary.LittleEndian.AppendUint64(nil, at+40)
	s.Tables(table, windowBase+1<<20, isCode)
	want := []uint64{at + 8, at + 12, at + 16, at + 20, at + 24, at + 40}
	if got := s.Sorted(); !slices.Equal(got, want) {
		t.Errorf("entries %#x, want %#x", got, want)
	}

	// Offsets from the table's own start: five entries, all of them code.
	var offsets []byte
	const tableAt = windowBase + 1<<20
	for i := range uint64(5) {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(at+8*i-tableAt))
	}
	s = EntrySearch{spans: []span{{at + 20, at + 30}}}
	s.Tables(offsets, tableAt, isCode)
	if got := s.Sorted(); !slices.Contains(got, at+24) {
		t.Errorf("entries of a table %#x, want %#x among them", got, at+24)
	}
}
