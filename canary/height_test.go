package canary

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// TestHeights follows registers to the last instruction.
func TestHeights(t *testing.T) {
	for name, c := range map[string]struct {
		code []string
		reg  x86.Reg
		want position
	}{
		"push":            {[]string{"50 ; push rax", "c3 ; ret"}, x86.RSP, position{fromCFA, -16}},
		"leave":           {[]string{"55 ; push rbp", "48 89 e5 ; mov rbp, rsp", "48 83 ec 20 ; sub rsp, 0x20", "c9 ; leave", "c3 ; ret"}, x86.RSP, position{fromCFA, -8}},
		"ways disagree":   {[]string{"74 01 ; je +1", "50 ; push rax", "c3 ; ret"}, x86.RSP, position{}},
		"ways agree":      {[]string{"50 ; push rax", "74 01 ; je +1", "90 ; nop", "c3 ; ret"}, x86.RSP, position{fromCFA, -16}},
		"lea":             {[]string{"48 8d 6c 24 08 ; lea rbp, [rsp+8]", "c3 ; ret"}, x86.RBP, position{fromCFA, 0}},
		"lea with index":  {[]string{"48 8d 6c 04 08 ; lea rbp, [rsp+rax+8]", "c3 ; ret"}, x86.RBP, position{}},
		"half a register": {[]string{"48 89 e5 ; mov rbp, rsp", "89 e5 ; mov ebp, esp", "c3 ; ret"}, x86.RBP, position{}},
	} {
		g := newGraph([]Code{{codeAt, machine(t, c.code...)}})
		if got := g.heights()[len(g.insts)-1]; got == nil || got[c.reg] != c.want {
			t.Errorf("%s: %v is at %+v, want %+v", name, c.reg, got, c.want)
		}
	}
}

// TestBelow lists the buffers that are in the frame and end below the guard.
func TestBelow(t *testing.T) {
	const sp, slot = stackAt + 0x100, stackAt + 0x180
	f := Frame{Buffers: []Buffer{
		{Name: "far", Addr: sp, Size: 8}, {Name: "near", Addr: slot - 8, Size: 8}, {Name: "above", Addr: slot + 8, Size: 8},
		{Name: "around", Addr: slot - 8, Size: 9}, {Name: "of a callee", Addr: sp - 8, Size: 8}, {Name: "empty", Addr: sp},
		{Name: "endless", Addr: sp, Size: ^uint64(0)},
	}}
	f.Registers.Set(image.RSP, uint64(sp))
	got := (&damage{frame: &f, addr: slot}).below()
	if len(got) != 2 || got[0].Name != "near" || got[1].Name != "far" {
		t.Errorf("buffers %+v", got)
	}
}

// TestResolveByFrame: if the code does not determine the stack pointer, only a
// slot that is addressed by the frame pointer is located by the CFA.
func TestResolveByFrame(t *testing.T) {
	f := Frame{CFA: stackAt + 0x200, Trust: evidence.TrustCFI}
	f.Registers.Set(image.RSP, uint64(stackAt+0x100))
	for _, c := range []struct {
		framePointer bool
		origin       origin
		want         bool
	}{{true, fromCFA, true}, {false, fromCFA, false}, {true, fromAligned, false}} {
		s := slot{place: position{c.origin, -0x18}, framePointer: c.framePointer}
		addr, ok := s.resolve(memory{}, &f, nil, &positions{}, true)
		if ok != c.want || ok && addr != f.CFA-0x18 {
			t.Errorf("%+v: %v, %v", c, addr, ok)
		}
	}
}
