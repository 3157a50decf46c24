package staticscan

import (
	"testing"

	"diagnose/image/x86"
)

// What a store writes, and which operand has the value. The bytes were assembled
// from asm by GNU as.
func TestStoreOperands(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		stores    bool
		source    string // "" if no operand has it
	}{
		{"mov qword ptr [rdi+8],rax", "48894708", true, "rax"},
		{"mov dword ptr [rdi],7", "c70707000000", true, "imm"},
		{"push rbx", "53", true, "rbx"},
		{"add dword ptr [rdi],esi", "0137", true, "rsi"},
		{"inc dword ptr [rdi]", "ff07", true, ""},
		{"movsb", "a4", true, "memory"},
		{"movups xmmword ptr [rdi],xmm1", "0f110f", true, "vector"},
		{"mov rax,qword ptr [rdi]", "488b07", false, ""},
	} {
		in := assembled(t, test.code)[0]
		if got := storeOperand(&in) != nil; got != test.stores {
			t.Errorf("%s: stores %v, want %v", test.asm, got, test.stores)
			continue
		}
		if !test.stores {
			continue
		}
		op, ok := source(&in)
		got := ""
		switch {
		case !ok:
		case op.IsImm:
			got = "imm"
		case op.IsMemory:
			got = "memory"
		case op.Reg.General():
			got = op.Reg.String()
		default:
			got = "vector"
		}
		if got != test.source {
			t.Errorf("%s: the value is in %q, want %q", test.asm, got, test.source)
		}
	}
}

// Values that bit operations made are followed to what they were made of.
func TestMadeOf(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		op        op
		from      x86.Reg
	}{
		{"mov eax,edi; and eax,15; ret", "89f883e00fc3", opMade, x86.RDI},
		{"mov rax,rdx; sub rax,rdi; ret", "4889d04829f8c3", opMade, x86.RDX},
		{"mov rax,rdi; shr rax,3; ret", "4889f848c1e803c3", opMade, x86.RDI},
	} {
		s := sliced(t, test.code)
		n := s.register(s.now, x86.RAX, 0)
		if n.op != test.op {
			t.Errorf("%s: op %d, want %d", test.asm, n.op, test.op)
			continue
		}
		a := n.a
		for a.op == opCopy {
			a = a.a
		}
		if a.reg != test.from {
			t.Errorf("%s: made of %v, want %v", test.asm, a.reg, test.from)
		}
	}
}

// A value that was computed or chosen of one thing and constants comes from that; one
// of several comes from what was operated on, or, if it was chosen, from the one
// that it equals. rdi holds 5 and rdx 3.
func TestMadeFrom(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		from      x86.Reg
	}{
		{"lea eax,[rdi+7]; test edi,edi; cmovns eax,edi; sar eax,3; ret", "8d470785ff0f49c7c1f803c3", x86.RDI},
		{"mov eax,edi; cdq; mov ecx,10; idiv ecx; ret", "89f899b90a000000f7f9c3", x86.RDI},
		{"mov eax,63; cmp edi,eax; cmovle eax,edi; ret", "b83f00000039c70f4ec7c3", x86.RDI},
		{"movsxd rax,edi; imul rax,rax,0x66666667; sar rax,34; sub eax,edi; ret", "4863c74869c06766666648c1f82229f8c3", x86.RDI},
		{"mov eax,edx; sub eax,edi; ret", "89d029f8c3", x86.RDX},
	} {
		s := sliced(t, test.code)
		n := s.register(s.now, x86.RAX, 0)
		if n.op != opMade {
			t.Errorf("%s: op %d", test.asm, n.op)
			continue
		}
		for n = s.madeFrom(n); n.op == opCopy; {
			n = n.a
		}
		if n.op != opEntry || n.reg != test.from {
			t.Errorf("%s: from %v by op %d, want %v", test.asm, n.reg, n.op, test.from)
		}
	}
	for held, want := range map[uint64]x86.Reg{5: x86.RDI, 3: x86.RDX} {
		s := sliced(t, "89d039c70f4ec7c3") // mov eax,edx; cmp edi,eax; cmovle eax,edi; ret
		s.registers.Set(x86.RAX, held)
		n := s.madeFrom(s.register(s.now, x86.RAX, 0))
		for n.op == opCopy {
			n = n.a
		}
		if n.reg != want {
			t.Errorf("of two things chosen the value %d came from %v, want %v", held, n.reg, want)
		}
	}
	s := sliced(t, "89d039c70f4ec7c3")
	if n := s.madeFrom(s.register(s.now, x86.RAX, 0)); n.op != opLost {
		t.Errorf("which of two things was chosen is not known, but op %d", n.op)
	}
}

// Of two summands the one to blame is followed, whatever their types say.
func TestLeads(t *testing.T) {
	index, pointer := constNode(3, 0), constNode(0x4000, 0)
	sum := sumOf(pointer, productOf(index, 8))
	tr := &originSearch{bad: index}
	if !tr.leads(sum.b, sum.a) || tr.leads(sum.a, sum.b) {
		t.Error("the index was not found in its product")
	}
	if (&originSearch{}).leads(sum.b, sum.a) {
		t.Error("something leads although nothing is to blame")
	}
}
