package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// codeImage is memory that has code at an address.
type codeImage struct {
	base evidence.Addr
	code []byte
}

func (c codeImage) ReadMemory(at evidence.Addr, b []byte) (int, error) {
	if at < c.base || at >= c.base+evidence.Addr(len(c.code)) {
		return 0, nil
	}
	return copy(b, c.code[at-c.base:]), nil
}

// TestConditions: the branches that decided are those of which one way alone leads to the call, and
// not a guard before them.
func TestConditions(t *testing.T) {
	const base = 0x1000
	code := []byte{
		0x85, 0xff, // 1000 test edi, edi
		0x74, 0x0a, // 1002 je 100e: a guard, without which nothing is checked
		0x85, 0xf6, // 1004 test esi, esi
		0x74, 0x07, // 1006 je 100f: decides
		0x83, 0xfe, 0x05, // 1008 cmp esi, 5
		0x7f, 0x02, // 100b jg 100f: decides
		0x90,                         // 100d nop
		0xc3,                         // 100e ret
		0xe8, 0x00, 0x00, 0x00, 0x00, // 100f call 1014
	}
	got := conditions(codeImage{base, code}, code, base, base+0x14)
	if len(got) != 2 || got[0] != base+6 || got[1] != base+0xb {
		t.Errorf("%v", got)
	}
}

// TestLeadingTo: arrivals at an instruction are those at the one before, unless code jumps there.
func TestLeadingTo(t *testing.T) {
	const base = 0x1000
	for _, x := range []struct {
		name string
		code []byte
		pc   evidence.Addr
		at   evidence.Addr
		ok   bool
	}{
		{"in a row", []byte{0x48, 0x89, 0xf8, 0x8b, 0x00, 0xc3}, base + 3, base, true},
		{"jumped to", []byte{0x74, 0x01, 0x90, 0x8b, 0x00, 0xc3}, base + 3, 0, false},
		{"after a branch", []byte{0x74, 0x02, 0x8b, 0x00, 0xc3}, base + 2, 0, false},
		{"a jump to anywhere", []byte{0xff, 0xe0, 0x90, 0x8b, 0x00, 0xc3}, base + 3, 0, false},
		{"the first", []byte{0x8b, 0x00, 0xc3}, base, 0, false},
	} {
		if at, ok := leadingTo(x.code, base, x.pc); ok != x.ok || ok && at != x.at {
			t.Errorf("%s: %v %v", x.name, at, ok)
		}
	}
}

// TestOtherOperands: what the failing instruction reads has to be as recorded, and nothing else.
func TestOtherOperands(t *testing.T) {
	in, err := x86.Decode([]byte{0x8b, 0x00}, 0x1000) // mov eax, [rax]
	if err != nil {
		t.Fatal(err)
	}
	regs := func(rax, rbx uint64) *image.Registers {
		var r image.Registers
		r.Set(image.RAX, rax)
		r.Set(image.RBX, rbx)
		return &r
	}
	one, two := codeImage{0x2000, []byte{1, 2, 3, 4}}, codeImage{0x2000, []byte{1, 2, 3, 5}}
	const elsewhere = 0x3000
	for name, x := range map[string]struct {
		fault evidence.Addr
		now   codeImage
		regs  *image.Registers
		want  string
	}{
		"as recorded":            {elsewhere, one, regs(0x2000, 7), ""},
		"a dead register":        {elsewhere, one, regs(0x2000, 8), ""},
		"another address":        {elsewhere, one, regs(0x2001, 7), "rax"},
		"another value in there": {elsewhere, two, regs(0x2000, 7), "the memory at 0x2000"},
		"no value in there":      {elsewhere, codeImage{0x4000, nil}, regs(0x2000, 7), "the memory at 0x2000"},
		"what it faulted at":     {0x2000, codeImage{0x4000, nil}, regs(0x2000, 7), ""},
		"faulted within":         {0x2003, two, regs(0x2000, 7), ""},
	} {
		if got := otherOperands(&in, x.fault, one, x.now, regs(0x2000, 7), x.regs); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
