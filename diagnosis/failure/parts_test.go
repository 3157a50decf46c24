package failure

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// The processor needs no stack and no signal: an instruction, registers, memory.
func TestProcessorAlone(t *testing.T) {
	f := newFake(load)
	var regs image.Registers
	for r := image.RAX; r <= image.RIP; r++ {
		regs.Set(r, 0)
	}
	regs.Set(image.RIP, codeAt)
	regs.Set(image.RAX, 0x8)
	c := newProcessor(&process{target: f}, &regs)
	if c.inst == nil {
		t.Fatal("the instruction was not decoded")
	}
	at := c.culpritFor(0x10)
	if at.op == nil || !c.accesses(at.addr) || c.accesses(at.addr+1<<20) {
		t.Errorf("culprit %+v", at)
	}
	regs.Set(image.RIP, guardAt)
	if c = newProcessor(&process{target: f}, &regs); c.inst != nil {
		t.Errorf("an instruction was read from a page that cannot be read: %s", c.inst.Text())
	}
}

func TestCallStackDrop(t *testing.T) {
	thread := image.Thread{}
	thread.Registers.Set(image.RIP, 7)
	frames := make([]unwind.Frame, 3)
	for i := range frames {
		frames[i].Registers.Set(image.RIP, uint64(i+1))
	}
	k := &callStack{thread: &thread, frames: frames}
	if up := k.above(1); up.pc() != 2 || k.pc() != 1 || k.cut != 0 {
		t.Errorf("above: pc %v, the stack's own %v, cut %d", up.pc(), k.pc(), k.cut)
	}
	k.drop(2)
	if k.pc() != 3 || k.cut != 2 {
		t.Errorf("dropped: pc %v, cut %d", k.pc(), k.cut)
	}
	k.drop(1)
	if k.pc() != 7 || k.cut != 3 {
		t.Errorf("without frames: pc %v, cut %d", k.pc(), k.cut)
	}
}

func TestPanicReaderAlone(t *testing.T) {
	f := newFake(nil)
	f.put(constAt, []byte("src/main.rs"))
	f.put64(constAt+0x100, constAt)
	f.put64(constAt+0x108, 11)
	f.put64(constAt+0x110, 5<<32|12)
	r := panicReader{&process{target: f}}
	if got, ok := r.rustLocation([]uint64{3, constAt + 0x100}); !ok || got != "src/main.rs:12:5" {
		t.Errorf("location %q, %v", got, ok)
	}
	if got, ok := r.rustText([]uint64{constAt, 11}); !ok || got != "src/main.rs" {
		t.Errorf("text %q, %v", got, ok)
	}
	if got, ok := r.rustText([]uint64{constAt, 12}); ok {
		t.Errorf("a text with a zero byte is taken: %q", got)
	}
}

func TestHandlerRecorded(t *testing.T) {
	frames := []unwind.Frame{{}, {Kind: evidence.SignalFrame}, {}, {Kind: evidence.SignalFrame}, {}}
	h := handlerFrames{stack: &callStack{process: &process{target: &fake{}}, frames: frames},
		recorded: []evidence.Signal{{Number: 11}, {Number: 10}}}
	for frame, want := range map[int]int{1: 10, 3: 11} {
		sig, fault := h.interruption(frame)
		if sig == nil || sig.Number != want || fault != IsFault(want) {
			t.Errorf("frame %d: %+v, fault %v; want signal %d", frame, sig, fault, want)
		}
	}
}
