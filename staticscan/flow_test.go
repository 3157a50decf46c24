package staticscan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/image/x86"
)

func text(v value) string {
	s := ""
	switch v.kind {
	case unknown:
		return "?"
	case absolute:
		s = fmt.Sprintf("%#x", uint64(v.off))
	case stack:
		if v.base != 0 {
			return "stack@"
		}
		s = fmt.Sprintf("stack%+d", v.off)
	case loaded:
		s = fmt.Sprintf("*%s+%#x", text(v.cell.at), v.off)
	}
	if v.varies {
		s += "..."
	}
	return s
}

func TestFlow(t *testing.T) {
	for _, test := range flowTests {
		t.Run(test.name, func(t *testing.T) {
			a := analyseCode(assembled(t, test.code), 0x1000, fakeSurroundings())
			var got []string
			for _, x := range a.accesses {
				got = append(got, text(x.at))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: operands (-want +got):\n%s", test.asm, diff)
			}
		})
	}
}

// Between a jump and the head of a loop behind it compilers fill up with
// instructions that nothing executes: they are no way into the loop.
func TestPaddingIsNoWay(t *testing.T) {
	// mov rax,rdi; jmp 2f; nopw [rax+rax]; 1: dec edx; 2: test edx,edx; jne 1b; ret
	s := sliced(t, "4889f8eb07660f1f0400ffca85d275fac3")
	n := s.register(s.now, x86.RAX, 0)
	for n.op == opCopy {
		n = n.a
	}
	if n.op != opEntry || n.reg != x86.RDI {
		t.Errorf("rax comes from %v by op %d (%s), want rdi as it came in", n.reg, n.op, n.why)
	}
}

// A register that was kept in the frame on one of the ways still has what came in.
func TestOneOriginOnSeveralWays(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		op        op
	}{
		{"mov [rsp-8],rdx; test edi,edi; je 1f; xor edx,edx; mov rdx,[rsp-8]; 1: mov rax,rdx; ret", "48895424f885ff740731d2488b5424f84889d0c3", opEntry},
		{"mov [rsp-8],rdi; test edi,edi; je 1f; mov rdx,[rsp-8]; 1: mov rax,rdx; ret", "48897c24f885ff7405488b5424f84889d0c3", opLost},
	} {
		s := sliced(t, test.code)
		s.registers.Forget(x86.RDX)
		n := s.register(s.now, x86.RAX, 0)
		for n.op == opCopy {
			n = n.a
		}
		if n.op != test.op || n.op == opEntry && n.reg != x86.RDX {
			t.Errorf("%s: rax comes from %v by op %d, want op %d", test.asm, n.reg, n.op, test.op)
		}
	}
}
