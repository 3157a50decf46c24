package verdict

import (
	"errors"
	"io"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/record"
)

// TestFirstReturn: a byte of another instruction is none, nor is a return that takes
// arguments off the stack.
func TestFirstReturn(t *testing.T) {
	const base = 0x1000
	for _, x := range []struct {
		name  string
		code  []byte
		at    uint64
		known bool
	}{
		{"the first", []byte{0xc3}, base, true},
		{"inside of a constant", []byte{0xb8, 0xc3, 0xc3, 0, 0, 0x5d, 0xc3}, base + 6, true},
		{"inside of a jump", []byte{0xeb, 0xc3, 0x90, 0xc3}, base + 3, true},
		{"one that takes more", []byte{0xc2, 8, 0, 0x90, 0xc3}, base + 4, true},
		{"repeated, as for old processors", []byte{0x90, 0xf3, 0xc3}, base + 1, true},
		{"none", []byte{0x48, 0x89, 0xc3, 0xb8, 0xc3, 0, 0, 0}, 0, false},
	} {
		if at, known := firstReturn(x.code, base); at != x.at || known != x.known {
			t.Errorf("%s: %#x %v, want %#x %v", x.name, at, known, x.at, x.known)
		}
	}
}

// TestFirstOfObject: before the first store behind what the heap did, an object has no
// value.
func TestFirstOfObject(t *testing.T) {
	access := func(by evidence.By, position uint64, pc evidence.Addr) evidence.Access {
		return evidence.Access{By: by, Kind: evidence.CodeWrite, Position: position, Ordinal: position, Thread: 1, PC: pc, Size: 8, New: uint64(pc), Context: -1}
	}
	log := func(list ...evidence.Access) *evidence.AccessLog {
		return &evidence.AccessLog{Variables: []evidence.Watched{{Address: 0x100, Size: 8}}, Accesses: list}
	}
	v := &victim{start: 0x100, size: 8}
	heap, first, second := access(evidence.ByHeap, 1, 1), access(evidence.ByProgram, 2, 2), access(evidence.ByProgram, 3, 3)
	for _, x := range []struct {
		name string
		log  *evidence.AccessLog
		at   evidence.Access
		want bool
	}{
		{"alone", log(first), first, true},
		{"behind the heap", log(heap, first), first, true},
		{"behind another", log(heap, first, second), second, false},
		{"behind another life", log(first, heap, second), second, true},
	} {
		if got := firstOfObject(v, x.log, &x.at); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// TestSoFar: a run that came to the place of the failure less often than the recorded
// one tells nothing, unless passing runs do so, too.
func TestSoFar(t *testing.T) {
	at := func(recorded uint64, passing ...arrived) *work {
		r := &reach{pc: 0x10, name: "report (a.c:3)", thread: 2, recorded: arrived{times: recorded, own: min(recorded, 1)}, passing: passing, counted: true}
		r.once.Do(func() {})
		return &work{reached: r}
	}
	behind, unknown := at(0), at(3)
	behind.reached.pc = 0
	unknown.reached.err = errors.New("no replay")
	for _, x := range []struct {
		name string
		w    *work
		t    trial
		says string // empty: it came as far
	}{
		{"as often", at(3), trial{reached: arrived{times: 3, own: 1}}, ""},
		{"less often", at(3), trial{reached: arrived{times: 2, own: 1}}, "it came to report (a.c:3) 2 times, and the recorded run 3 times"},
		{"never", at(1), trial{}, "never, and the recorded run once"},
		{"as often as one that passes", at(3, arrived{times: 5, own: 1}, arrived{times: 2, own: 1}), trial{reached: arrived{times: 2, own: 1}}, ""},
		{"less often than those that pass", at(3, arrived{times: 5, own: 1}, arrived{times: 2, own: 1}), trial{reached: arrived{times: 1, own: 1}}, "once, and the recorded run 3 times"},
		{"passing runs that cannot be replayed", unknown, trial{reached: arrived{times: 1, own: 1}}, "no replay"},
		{"others in place of the thread that failed", at(3), trial{reached: arrived{times: 3, own: 0}}, "thread 2, which failed in the recorded run, came to report (a.c:3) never, and there once"},
		{"others in its place, as in a run that passes", at(3, arrived{times: 4, own: 0}), trial{reached: arrived{times: 3, own: 0}}, ""},
		{"others in its place, and a run that passes with it", at(3, arrived{times: 1, own: 1}), trial{reached: arrived{times: 3, own: 0}}, "thread 2"},
		{"less often and without it, as no single run that passes", at(3, arrived{times: 2, own: 1}, arrived{times: 4, own: 0}), trial{reached: arrived{times: 2, own: 0}}, "it came to report (a.c:3) 2 times"},
		{"a failure behind main", behind, trial{events: 1, total: 9}, ""},
		{"a place that was not seen, fewer events", at(0), trial{events: 8, total: 9}, "it made 8 events, and the recorded run 9"},
		{"a place that was not seen, as many events", at(0), trial{events: 9, total: 9}, ""},
		{"more often than is counted, fewer events", at(mostReached), trial{reached: arrived{times: mostReached, own: 1}, events: 8, total: 9}, "8 events"},
		{"more often than is counted", at(mostReached), trial{reached: arrived{times: mostReached, own: 1}, events: 9, total: 9}, ""},
		{"a place that could not be kept", at(3), trial{reached: arrived{times: 1, own: 1}, events: 8, total: 9, unbroken: []evidence.Addr{0x10}}, "8 events"},
	} {
		if got := x.w.reached.soFar(&x.t); x.says == "" && got != "" || !strings.Contains(got, x.says) {
			t.Errorf("%s: %q, want %q", x.name, got, x.says)
		}
	}
}

// TestPointed tells pointers from the frame's own variables by how compilers address
// them.
func TestPointed(t *testing.T) {
	for _, x := range []struct {
		name   string
		code   []byte
		framed bool
		want   bool
	}{
		{"mov [rax], edx", []byte{0x89, 0x10}, true, true},
		{"mov [rbp-8], edx, of a frame", []byte{0x89, 0x55, 0xf8}, true, false},
		{"mov [rbp-8], edx, a pointer", []byte{0x89, 0x55, 0xf8}, false, true},
		{"mov [rsp+8], edx", []byte{0x89, 0x54, 0x24, 0x08}, false, false},
		{"mov [rip+16], edx", []byte{0x89, 0x15, 0x10, 0, 0, 0}, false, false},
		{"push rax", []byte{0x50}, false, false},
		{"mov edx, [rax]", []byte{0x8b, 0x10}, false, false},
	} {
		in, err := x86.Decode(x.code, 0)
		if err != nil {
			t.Fatal(err)
		}
		o := storedTo(&in)
		if got := o != nil && pointed(&o.Memory, x.framed); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// TestObjectOfFrame: of a function that is in several activations the object is the
// innermost one's, and none where the entry was not seen.
func TestObjectOfFrame(t *testing.T) {
	x := &boundsExperiment{where: onStack, start: 0x7000, end: 0x7020, cfa: 0x7040}
	r := &boundsReplay{boundsExperiment: x, frames: map[uint32][]evidence.Addr{1: {0x9040, 0x8040}}}
	for _, c := range []struct {
		thread uint32
		sp     evidence.Addr
		start  evidence.Addr
		known  bool
	}{{1, 0x7f00, 0x8000, true}, {1, 0x8f00, 0x9000, true}, {1, 0x9f00, 0, false}, {2, 0x7f00, 0, false}} {
		start, end, known := r.object(c.thread, c.sp)
		if known != c.known || known && (start != c.start || end != start+0x20) {
			t.Errorf("thread %d at %v: %v to %v, %v", c.thread, c.sp, start, end, known)
		}
	}
	var regs image.Registers
	regs.Set(image.RSI, 0x8010)
	if !handed(&regs, 0x8000, 0x8020) || handed(&regs, 0x9000, 0x9020) {
		t.Error("a call is handed another object than its arguments say")
	}
}

// What the experiments on a recording are compared with is replayed once, for whichever
// cause; another recording has replays of its own.
func TestUnchangedIsReplayedOnce(t *testing.T) {
	undecided, decided := &record.Recording{Manifest: &record.Manifest{}}, &record.Recording{Manifest: &record.Manifest{}}
	undecided.Manifest.Outcome.Declared = &record.Declared{}
	x := &experiments{rec: undecided, baselines: map[replayOf]evidence.Experiment{}}
	first := x.unchanged(undecided)
	if first.Undecided == "" || !first.Expect {
		t.Fatalf("the first is %+v", first)
	}
	undecided.Manifest.Outcome.Declared = nil // a second replay would see it
	if second := x.unchanged(undecided); second != first {
		t.Errorf("the second is %+v, want %+v", second, first)
	}
	if other := x.unchanged(decided); other.Undecided != "" {
		t.Errorf("that of another recording is %+v", other)
	}
}

// unreadable is memory that cannot be read.
type unreadable struct{ agent.Memory }

func (unreadable) ReadMemory(evidence.Addr, []byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Damage that cannot be read is not known to have gone with a change.
func TestUnreadableDamage(t *testing.T) {
	c := &evidence.Case{Findings: []evidence.Finding{{Damage: &evidence.Damage{Start: 0x1000, End: 0x1010}}}}
	e := &recordedEnd{in: &Input{Case: c}}
	if damaged, err := e.stillDamaged(unreadable{}); damaged || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, %v", damaged, err)
	}
}
