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
		change func(*judge, *fake)
		addr   evidence.Addr
		want   bool
	}{
		{"frame alone", func(*judge, *fake) {}, sp, true},
		{"in the red zone", func(*judge, *fake) {}, sp - redZone, true},
		{"below the red zone", func(*judge, *fake) {}, sp - redZone - 1, false},
		{"guessed frame", func(j *judge, _ *fake) { j.stack.frames[0].Trust = evidence.TrustScan }, sp, false},
		{"frame begins elsewhere", func(j *judge, _ *fake) { j.stack.frames[0].CFA = dataAt }, sp, false},
		{"stack pointer on another mapping", func(_ *judge, f *fake) { f.addMapping(sp, "r--", make([]byte, 0x1000), "") }, sp - 8, false},
	}
	for _, test := range tests {
		f := newFake(store)
		j := f.judge(segv(segvMapErr, test.addr), regs{image.RAX: uint64(test.addr), image.RSP: sp})
		test.change(j, f)
		j.process.mappings = f.mappings
		if got := j.classify().Kind == evidence.StackOverflow; got != test.want {
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
		j := newFake(store).judge(segv(segvAccErr, addr), regs{image.RAX: addr, image.RSP: test.sp})
		if got := j.classify().Kind == evidence.StackOverflow; got != test.want {
			t.Errorf("%s: stack overflow %v, want %v", test.name, got, test.want)
		}
	}
	f := newFake(store)
	f.MappingAt(guardAt).Perms = "rw-"
	if kind := f.judge(segv(segvAccErr, addr), regs{image.RAX: addr, image.RSP: stackAt}).classify().Kind; kind == evidence.StackOverflow {
		t.Errorf("a fault in writable memory below a stack is called %s", kind)
	}
	far := evidence.Addr(stackAt + 8 - guardReach)
	j := newFake(store).judge(segv(segvMapErr, far), regs{image.RAX: uint64(far), image.RSP: stackAt + 64})
	if kind := j.classify().Kind; kind == evidence.StackOverflow {
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
	j := f.judge(segv(segvAccErr, stackAt-8), nil)
	j.stack.frames = frames(4, 4)
	if r := j.stack.recursion(stack); r != nil {
		t.Errorf("two turns: %+v", r)
	}
	j.stack.frames = frames(4, 4, 4)
	if r := j.stack.recursion(stack); r == nil || r.Turns != 3 || len(r.Cycle) != 1 || r.Cycle[0].Function != "a" {
		t.Errorf("three turns: %+v", r)
	}
	j.stack.frames = frames(4, 4, 4)
	j.stack.walk.Cycle = &unwind.Cycle{First: 1, Period: 1, Turns: 9}
	if r := j.stack.recursion(stack); r == nil || r.Turns != 9 {
		t.Errorf("the walk's cycle: %+v", r)
	}
	j.stack.cut = 2
	if r := j.stack.recursion(stack); r == nil || r.Turns != 3 {
		t.Errorf("the walk's cycle before the failure: %+v", r)
	}
}
