package failure

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// An access far below a stack is the overflow of a frame that is larger than the rest of the stack
// only if all signs of such a frame are present.
func TestLeftStack(t *testing.T) {
	const sp = guardAt - 4<<20
	tests := []struct {
		name   string
		change func(*scene, *fake)
		addr   evidence.Addr
		want   bool
	}{
		{"frame alone", func(*scene, *fake) {}, sp, true},
		{"in the red zone", func(*scene, *fake) {}, sp - redZone, true},
		{"below the red zone", func(*scene, *fake) {}, sp - redZone - 1, false},
		{"guessed frame", func(s *scene, _ *fake) { s.frames[0].Trust = evidence.TrustScan }, sp, false},
		{"frame begins elsewhere", func(s *scene, _ *fake) { s.frames[0].CFA = dataAt }, sp, false},
		{"stack pointer on another mapping", func(_ *scene, f *fake) { f.add(sp, "r--", make([]byte, 0x1000), "") }, sp - 8, false},
	}
	for _, test := range tests {
		f := newFake(store)
		s := f.scene(segv(segvMapErr, test.addr), regs{image.RAX: uint64(test.addr), image.RSP: sp})
		test.change(s, f)
		s.mappings = f.mappings
		if got := s.classify(0).Kind == evidence.StackOverflow; got != test.want {
			t.Errorf("%s: stack overflow %v, want %v", test.name, got, test.want)
		}
	}
}

// An access by a bad pointer a little below a stack is no overflow while the stack pointer is far
// from both.
func TestBelowStackByChance(t *testing.T) {
	const addr = stackAt - 8
	tests := []struct {
		name string
		sp   uint64
		want bool
	}{
		{"about to push", stackAt, true},
		{"in the last page", stackAt + pageSize - 8, true},
		{"above the last page", stackAt + pageSize, false},
		{"run out", stackAt - 64, true},
	}
	for _, test := range tests {
		s := newFake(store).scene(segv(segvAccErr, addr), regs{image.RAX: addr, image.RSP: test.sp})
		if got := s.classify(0).Kind == evidence.StackOverflow; got != test.want {
			t.Errorf("%s: stack overflow %v, want %v", test.name, got, test.want)
		}
	}
	f := newFake(store)
	f.MappingAt(guardAt).Perms = "rw-"
	if kind := f.scene(segv(segvAccErr, addr), regs{image.RAX: addr, image.RSP: stackAt}).classify(0).Kind; kind == evidence.StackOverflow {
		t.Errorf("a fault in writable memory below a stack is called %s", kind)
	}
	far := evidence.Addr(stackAt + 8 - guardReach)
	s := newFake(store).scene(segv(segvMapErr, far), regs{image.RAX: uint64(far), image.RSP: stackAt + 64})
	if kind := s.classify(0).Kind; kind == evidence.StackOverflow {
		t.Errorf("an access %d bytes below the stack pointer is called %s", stackAt+64-far, kind)
	}
}

// A recursion takes three turns. The cycle of the walk counts only if it is in the frames under
// judgement.
func TestRecursion(t *testing.T) {
	f := newFake(nil)
	f.symbols = []image.Symbol{{Name: "a", Addr: codeAt, Size: 0x10}, {Name: "b", Addr: codeAt + 0x10, Size: 0x10}}
	frames := func(pcs ...evidence.Addr) []unwind.Frame {
		var list []unwind.Frame
		for _, pc := range pcs {
			fr := unwind.Frame{Kind: evidence.Physical}
			fr.Registers.Set(image.RIP, uint64(codeAt+pc))
			list = append(list, fr)
		}
		return list
	}
	stack := &image.Mapping{Start: stackAt, End: stackAt + 0x2000, Perms: "rw-"}
	s := f.scene(segv(segvAccErr, stackAt-8), nil)
	s.frames = frames(4, 4)
	if r := s.recursion(stack); r != nil {
		t.Errorf("two turns: %+v", r)
	}
	s.frames = frames(4, 4, 4)
	if r := s.recursion(stack); r == nil || r.Turns != 3 || len(r.Cycle) != 1 || r.Cycle[0].Function != "a" {
		t.Errorf("three turns: %+v", r)
	}
	s.frames = frames(4, 4, 4)
	s.stack.Cycle = &unwind.Cycle{First: 1, Period: 1, Turns: 9}
	if r := s.recursion(stack); r == nil || r.Turns != 9 {
		t.Errorf("the walk's cycle: %+v", r)
	}
	s.cut = 2
	if r := s.recursion(stack); r == nil || r.Turns != 3 {
		t.Errorf("the walk's cycle before the failure: %+v", r)
	}
}
