package replay

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
	"diagnose/replay/tracee/traceetest"
)

// ownRecordings is a recording of one process that ended with this outcome.
func ownRecordings(o record.Outcome) *recorded.Recordings {
	rec := &record.Recording{Manifest: &record.Manifest{Outcome: o}}
	return &recorded.Recordings{Rec: rec, Stages: []*recorded.Stage{{Rec: rec}}}
}

// fakePlacer notes the calls that it gets.
type fakePlacer struct {
	pc    evidence.Addr
	count uint64
}

func (f *fakePlacer) BreakAt(_ *tracee.Thread, pc evidence.Addr, count uint64) error {
	f.pc, f.count = pc, count
	return nil
}

// A request asks for the parts of its mode and for no others.
func TestRequestParts(t *testing.T) {
	common := Common{Timing: record.TimingLazy, Sleeping: time.Second}
	for name, x := range map[string]struct {
		request                    Request
		step, walk, free, watching bool
	}{
		"plain": {request: PlainRequest{Common: common, Verify: true}},
		"watch": {request: WatchRequest{Common: common, Watching: Watching{Watches: make([]Watch, 1)}}, watching: true},
		"step":  {request: StepRequest{Common: common}, step: true},
		"walk":  {request: WalkRequest{Common: common}, walk: true},
		"free":  {request: FreeRequest{Common: common, Watching: Watching{Watches: make([]Watch, 1)}}, free: true, watching: true},
	} {
		p := x.request.parts()
		if p.Timing != record.TimingLazy || p.verify != (name == "plain") || p.step != nil != x.step || p.walk != nil != x.walk ||
			p.free != nil != x.free || len(p.watching.Watches) > 0 != x.watching {
			t.Errorf("%s: %+v", name, p)
		}
		rec := &record.Recording{Manifest: &record.Manifest{}}
		rec.Manifest.Times.UserNS = int64(2 * time.Second)
		if sleeping, computing := p.bounds(rec); sleeping != time.Second || computing != defaultComputing+10*time.Second {
			t.Errorf("%s: bounds %v and %v", name, sleeping, computing)
		}
	}
}

// The engine is asked to stop at the event of the next hook, and at none after the last one.
func TestHookQueue(t *testing.T) {
	p, placed := traceetest.Process(t), &fakePlacer{}
	first := evidence.Moment{Thread: 1, Ordinal: 4, PC: 0x1000, Count: 1}
	same := evidence.Moment{Thread: 1, Ordinal: 4, PC: 0x1000, Count: 3}
	later := evidence.Moment{Thread: 2, Ordinal: 7}
	q := &hookQueue{process: p, placer: placed, list: []Hook{{At: first}, {At: same}, {At: later}}}
	if err := q.arm(&tracee.Thread{Index: 1}, evidence.Moment{}); err != nil || placed.pc != 0x1000 || placed.count != 1 || !q.armed {
		t.Errorf("armed %v at %v, arrival %d, %v", q.armed, placed.pc, placed.count, err)
	}
	// The second Moment is two arrivals after the first one.
	if err := q.next(&tracee.Thread{Index: 1}, first); err != nil || placed.pc != 0x1000 || placed.count != 2 || !q.armed {
		t.Errorf("armed %v at %v, arrival %d, %v", q.armed, placed.pc, placed.count, err)
	}
	for _, want := range []struct {
		thread  uint32
		ordinal uint64
	}{{2, 7}, {0, ^uint64(0)}} {
		if err := q.next(&tracee.Thread{Index: 1}, same); err != nil || q.armed {
			t.Fatalf("armed %v, %v", q.armed, err)
		}
		control, err := p.ReadControl()
		if err != nil || control.StopThread != want.thread || control.StopAt != want.ordinal {
			t.Errorf("asked for thread %d, event %d, want %+v, %v", control.StopThread, control.StopAt, want, err)
		}
	}
}

func TestMissedHook(t *testing.T) {
	at := evidence.Moment{Thread: 3}
	q := &hookQueue{list: []Hook{{Every: true}, {step: &StepWindow{}}}}
	if h := q.missed(); h != nil {
		t.Errorf("missed %+v", h)
	}
	q.list = append(q.list, Hook{At: at})
	if h := q.missed(); h == nil || h.At != at {
		t.Errorf("missed %+v, want %v", h, at)
	}
}

// Breaks are traps in the text that a reader of the memory does not see, and that are removed for
// a probe.
func TestBreaksInText(t *testing.T) {
	p := traceetest.Process(t)
	text := traceetest.Pages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_EXEC)
	b := newBreaks(p, ownRecordings(record.Outcome{}), []Break{{PC: evidence.Addr(text + 8)}, {PC: evidence.Addr(text + 64)}, {PC: 8}})
	have := func() [2]byte {
		var page [128]byte
		if _, err := p.Memory.Memory.ReadAt(page[:], int64(text)); err != nil {
			t.Fatal(err)
		}
		return [2]byte{page[8], page[64]}
	}
	for _, step := range []struct {
		what string
		do   func() error
		want [2]byte
	}{
		{"placed", b.place, [2]byte{0xcc, 0xcc}},
		{"give way", func() error { return b.giveWay(&patch.Window{Start: text + 4, End: text + 9}) }, [2]byte{0, 0xcc}},
		{"placed again", b.place, [2]byte{0, 0xcc}},
		{"removed", b.remove, [2]byte{}},
	} {
		if err := step.do(); err != nil || have() != step.want {
			t.Errorf("%s: the text has % x, want % x, %v", step.what, have(), step.want, err)
		}
		var seen [1]byte
		if _, err := p.Memory.ReadAt(seen[:], int64(text+64)); err != nil || seen[0] != 0 {
			t.Errorf("%s: a reader sees %#x, %v", step.what, seen[0], err)
		}
	}
	if want := []evidence.Addr{evidence.Addr(text + 8)}; !slices.Equal(b.unbroken, want) {
		t.Errorf("%v gave way, want %v", b.unbroken, want)
	}
}

// The recorded end decides whether a process ended as recorded.
func TestJudgeOfTheEnd(t *testing.T) {
	leave := func(o record.Outcome, status uint64, free bool) *judge {
		j := &judge{process: &tracee.Process{}, recordings: ownRecordings(o), result: &Result{}}
		// Naming a difference fails, because there is no process.
		if err := j.exited(&tracee.Thread{Index: 1}, &tracee.SignalStop{Regs: ptrace.Registers{Rdi: status}}, free); err != nil {
			j.end = nil
		}
		return j
	}
	exit := record.Outcome{Kind: record.OutcomeExit, Status: 3}
	for _, free := range []bool{false, true} {
		for _, o := range []record.Outcome{exit, {Kind: record.OutcomeCut}} {
			if j := leave(o, 3, free); j.end == nil || j.end.kind != EndExit || j.end.status != 3 || j.result.Left != nil {
				t.Errorf("recorded %+v, free %v: %+v", o, free, j.end)
			}
		}
	}
	r := ownRecordings(record.Outcome{Kind: record.OutcomeSignal, Signal: int(unix.SIGABRT), Thread: 2})
	two, one := &tracee.Thread{Index: 2}, &tracee.Thread{Index: 1}
	if !r.EndsWith(two, unix.SIGABRT) || r.EndsWith(one, unix.SIGABRT) || r.EndsWith(two, unix.SIGSEGV) {
		t.Error("the recorded signal is SIGABRT of thread 2")
	}
	if !r.AsRecorded(two, int(unix.SIGABRT)) || r.AsRecorded(one, int(unix.SIGABRT)) || r.FaultOutcome() {
		t.Error("the recorded failure is SIGABRT of thread 2, which was sent")
	}
	if !ownRecordings(record.Outcome{Kind: record.OutcomeCut}).EndsShort() {
		t.Error("a recording that was cut off ends short")
	}
}
