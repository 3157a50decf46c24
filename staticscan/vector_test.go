package staticscan

import (
	"testing"

	"diagnose/evidence"
)

// A word of a vector register is followed to the operand that it was put together
// of. rdi holds 5 and rdx 3; the data at 0x4020 is two pointers to the heap. The
// bytes were assembled from asm by GNU as.
func TestVectorWords(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		low, high uint64
		op        op
	}{
		{"movq xmm0,rdi; movq xmm1,rdx; punpcklqdq xmm0,xmm1; ret", "66480f6ec766480f6eca660f6cc1c3", 5, 3, opEntry},
		{"vmovq xmm2,rdi; vpinsrq xmm0,xmm2,rdx,1; ret", "c4e1f96ed7c4e3e922c201c3", 5, 3, opEntry},
		{"movups xmm0,xmmword ptr [rip+0x3019]; ret", "0f100519300000c3", fakeHeap, fakeHeap, opLoad},
		{"movups xmm0,xmmword ptr [rip+0x3019]; movq xmm1,rdx; ret", "0f10051930000066480f6ecac3", fakeHeap, fakeHeap, opLoad},
		{"pxor xmm0,xmm0; ret", "660fefc0c3", 0, 0, opConst},
	} {
		s := sliced(t, test.code)
		for offset, want := range map[int]uint64{0: test.low, 8: test.high} {
			n := s.inVector(s.now, "ymm0", offset, 8)
			if n == nil {
				t.Errorf("%s: the word at %d is not known", test.asm, offset)
				continue
			}
			if v, ok := n.best(); !ok || v != want || n.op != test.op {
				t.Errorf("%s: the word at %d is %#x (%v) by op %d, want %#x by %d", test.asm, offset, v, ok, n.op, want, test.op)
			}
		}
	}
	s := sliced(t, "66480f6ecac3")
	if s.inVector(s.now, "xmm0", 0, 8) != nil {
		t.Error("movq xmm1,rdx gave xmm0 a value")
	}
}

// What a store put into a word by a vector register is followed from the word, whichever
// of its bytes the store changed first; a word may be one of four. The bytes were
// assembled from asm by GNU as.
func TestStoredFromVector(t *testing.T) {
	for _, test := range []struct {
		word evidence.Addr
		size int
		addr evidence.Addr
		cell evidence.Addr
		from int
	}{
		{word: fakeOther, size: 8, addr: fakeOther, cell: fakeData + 0x20, from: 8},
		{word: fakeOther + 8, size: 8, addr: fakeOther + 8 + 1, cell: fakeData + 0x28, from: 8},
		{word: fakeOther + 12, size: 4, addr: fakeOther + 12 + 3, cell: fakeData + 0x2c, from: 4},
		{word: fakeOther + 4, size: 4, addr: fakeOther + 4, cell: fakeData + 0x24, from: 4},
		{addr: fakeOther + 8, cell: fakeData + 0x28, from: 8}, // nothing is known of what was there
	} {
		// movdqu xmm0,xmmword ptr [rip+0x3018]; movups xmmword ptr [rip+0x30f1],xmm0; ret
		s := sliced(t, "f30f6f05183000000f1105f1300000c3")
		s.now = 1
		st := &storeTrail{originSearch: &originSearch{in: s.in, processView: s.processView}, addr: test.addr, word: Overwritten{test.word, make([]byte, test.size)}}
		st.byInstruction(s)
		b := &st.blame
		if b.Cell == nil || *b.Cell != test.cell || b.CellSize != test.from {
			t.Errorf("%v of the word at %v: the cell is %v of %d bytes, want %v of %d; %+v", test.addr, test.word, b.Cell, b.CellSize, test.cell, test.from, b.Steps)
		}
	}
}
