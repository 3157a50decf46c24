package staticscan

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// step is an instruction that was executed: where, and the registers that count.
type step struct {
	offset evidence.Addr
	regs   map[image.Register]uint64
}

const takenCode = 0x1000

// takenOf makes the way of a function out of its code, and the work on it.
func takenOf(t *testing.T, code string, outer *Course, steps ...step) (*resultSearch, *Course) {
	t.Helper()
	s := sliced(t, code)
	var text []byte
	for _, in := range assembled(t, code) {
		text = append(text, in.Bytes...)
	}
	s.memory.(fakeMemory)[takenCode] = append(text, make([]byte, 16)...)
	w := &Course{SP: fakeEntry, Outer: outer}
	for _, x := range steps {
		var regs image.Registers
		regs.Set(image.RSP, fakeEntry-8)
		for r, v := range x.regs {
			regs.Set(r, v)
		}
		regs.Set(image.RIP, uint64(takenCode+x.offset))
		if err := w.Take(s.memory, &regs); err != nil {
			t.Fatal(err)
		}
	}
	return &resultSearch{processView: s.processView, in: s.in, chosen: -1}, w
}

func at(offset evidence.Addr, list ...uint64) step {
	x := step{offset, map[image.Register]uint64{}}
	for i := 0; i+1 < len(list); i += 2 {
		x.regs[image.Register(list[i])] = list[i+1]
	}
	return x
}

const (
	rax = uint64(image.RAX)
	rcx = uint64(image.RCX)
	rdi = uint64(image.RDI)
)

// Where a returned value came from is told by what was executed, and not by what may
// have been.
func TestTakenFollows(t *testing.T) {
	slot := uint64(fakeEntry - 16)
	tests := []struct {
		name, code string
		steps      []step
		jumped     bool
		kind       evidence.OriginKind
		step       int
		value      uint64
		cell       evidence.Addr
	}{
		{"a constant", "31c0c3", []step{at(0, rax, 7), at(2, rax, 0)}, false, evidence.OriginConstant, 0, 0, 0},
		{"minus one", "b8ffffffffc3", []step{at(0), at(5, rax, 0xffffffff)}, false, evidence.OriginConstant, 0, 0xffffffff, 0},
		{"memory", "488b07c3", []step{at(0, rdi, fakeHeap), at(3, rax, 1)}, false, evidence.OriginCell, 0, 1, fakeHeap},
		{"a call inside", "e8000000004889c34889d8c3", []step{at(0), at(5, rax, 9), at(8), at(11, rax, 9)}, false, evidence.OriginResult, 0, 9, 0},
		{"what was handed in", "4889f8c3", []step{at(0, rdi, 5), at(3, rax, 5)}, false, evidence.OriginArgument, 0, 5, 0},
		{"put aside and fetched", "48897c24f8488b4424f8c3", []step{at(0, rdi, 5), at(5, rax, 1), at(10, rax, 5)}, false, evidence.OriginArgument, 0, 5, 0},
		{"put aside, and changed by another", "48897c24f8488b4424f8c3", []step{at(0, rdi, 6), at(5, rax, 1), at(10, rax, 5)}, false, evidence.OriginCell, 1, 5, evidence.Addr(slot)},
		{"chosen", "480f44c1c3", []step{at(0, rax, 1, rcx, 0), at(4, rax, 0)}, false, evidence.OriginArgument, 0, 0, 0},
		{"not chosen", "b80100000031c9480f44c1c3", []step{at(0), at(5, rax, 1), at(7, rax, 1, rcx, 0), at(11, rax, 1, rcx, 0)}, false, evidence.OriginConstant, 0, 1, 0},
		// test rdi, rdi; je +0; xor edi, edi; mov rax, rdi
		{"0 written over what was found to be 0", "4885ff740031ff4889f8c3", []step{at(0, rdi, 0), at(3, rdi, 0), at(5, rdi, 0), at(7, rdi, 0), at(10, rax, 0)}, false, evidence.OriginArgument, 0, 0, 0},
		// test rsi, rsi; je +0; xor edi, edi; mov rax, rdi
		{"0 after a look at another", "4885f6740031ff4889f8c3", []step{at(0, rdi, 0), at(3, rdi, 0), at(5, rdi, 0), at(7, rdi, 0), at(10, rax, 0)}, false, evidence.OriginConstant, 2, 0, 0},
		{"a jump to a library", "31c0e900000000", []step{at(0), at(2, rax, 0)}, true, evidence.OriginResult, 1, 0, 0},
	}
	for _, test := range tests {
		tr, w := takenOf(t, test.code, nil, test.steps...)
		tr.memory.(fakeMemory)[fakeEntry-0x80] = append(make([]byte, 0x70), words(5, 0)...)
		w.Jumped = test.jumped
		for i := range w.Steps { // the stack was put there behind Take
			if in, _ := w.inst(tr.memory, w.Steps[i].Registers.PC()); in.Op == "mov" && w.Steps[i].HasRead && test.cell != fakeHeap {
				w.Steps[i].Read = 5
			}
		}
		g := tr.follow(w, len(w.Steps), spot{reg: x86.RAX, size: 8})
		if g.Kind != test.kind || g.Kind != evidence.OriginArgument && g.Step != test.step || g.Cell != test.cell || g.Value != test.value {
			t.Errorf("%s: %+v", test.name, g)
		}
	}
}

// What a function was handed is followed into the way of its caller.
func TestTakenGoesOutward(t *testing.T) {
	_, outer := takenOf(t, "31ffe800000000", nil, at(0, rdi, 4), at(2, rdi, 0))
	tr, inner := takenOf(t, "4889f8c3", outer, at(0, rdi, 0), at(3, rax, 0))
	if g := tr.follow(inner, len(inner.Steps), spot{reg: x86.RAX, size: 8}); g.Kind != evidence.OriginConstant || g.Outward != 1 || g.Course != outer || g.Step != 0 {
		t.Errorf("%+v", g)
	}
}

// What the last condition was about is followed through a choice by an earlier one.
func TestTakenTested(t *testing.T) {
	// mov eax, 1; xor ecx, ecx; cmp rdi, 0; cmove rax, rcx; test rax, 1; je; call
	const code = "b80100000031c94883ff00480f44c148a9010000007400e800000000"
	tr, w := takenOf(t, code, nil, at(0, rdi, 0), at(5, rax, 1), at(7, rax, 1, rcx, 0, rdi, 0), at(11, rax, 1, rcx, 0), at(15, rax, 0), at(21), at(23))
	if g, ok := tr.tested(w); !ok || g.Kind != evidence.OriginArgument || g.Register != image.RDI {
		t.Errorf("%v, %+v", ok, g)
	}
}
