package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"diagnose/image/x86"
)

func TestMovedInstructions(t *testing.T) {
	const pc, page = windowBase + 0x100, windowBase + 0x100000
	for _, x := range []struct {
		name string
		code []byte
		op   string // of the last moved instruction
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
		a := &Assembler{Base: page}
		if err := a.Move(&inst); err != nil {
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

	// The immediate has the same bytes as the displacement, and the byte before it looks like the byte before a displacement.
	inst, err := x86.Decode([]byte{0x81, 0x3d, 5, 5, 5, 5, 5, 5, 5, 5}, pc)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Assembler{Base: page}).Move(&inst); !errors.Is(err, ErrImpossible) {
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
		a := &Assembler{Base: page}
		if err := a.Move(&inst); err != nil || !Movable(&inst) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// The displacement is at the end of the moved form.
		n := a.Len()
		to := page + uint64(n) + uint64(int64(int32(binary.LittleEndian.Uint32(a.Bytes()[n-4:]))))
		if want := pc + uint64(len(code)) + 0x10; to != want {
			t.Errorf("%s leads to %#x, want %#x", name, to, want)
		}
	}
}

// TestCodeForLater moves code to a place that is known later: it is the same as for a known one.
func TestCodeForLater(t *testing.T) {
	const pc, page = windowBase + 0x100, windowBase + 0x100000
	text := []byte{0x83, 0x3d, 0x10, 0, 0, 0, 1, 0x75, 0x20, 0xff, 0x15, 0x30, 0, 0, 0, 0xe3, 0x40, 0x89, 0xc8}
	var code Code
	a := &Assembler{Base: page}
	for at := 0; at < len(text); {
		inst, err := x86.Decode(text[at:], pc+uint64(at))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(code.Move(&inst), a.Move(&inst)); err != nil {
			t.Fatal(err)
		}
		at += inst.Len
	}
	if len(code.Links) != 4 {
		t.Errorf("%d links: %+v", len(code.Links), code.Links)
	}
	if got, err := code.Resolve(page); err != nil || !bytes.Equal(got, a.Bytes()) {
		t.Errorf("%x (%v), want %x", got, err, a.Bytes())
	}
	if _, err := code.Resolve(page + 1<<32); !errors.Is(err, ErrImpossible) {
		t.Errorf("out of reach: %v", err)
	}
}
