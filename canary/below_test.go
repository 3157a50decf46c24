package canary

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86/heights"
)

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
		origin       heights.Origin
		want         bool
	}{{true, heights.FromCFA, true}, {false, heights.FromCFA, false}, {true, heights.FromAligned, false}} {
		s := slot{place: heights.Position{Origin: c.origin, Offset: -0x18}, framePointer: c.framePointer}
		addr, ok := s.resolve(memory{}, &f, nil, &heights.Positions{}, true)
		if ok != c.want || ok && addr != f.CFA-0x18 {
			t.Errorf("%+v: %v, %v", c, addr, ok)
		}
	}
}
