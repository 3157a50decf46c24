package driver

import (
	"fmt"
	"testing"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

func stackOfPCs(pcs ...uint64) unwind.Stack {
	var s unwind.Stack
	for _, pc := range pcs {
		f := unwind.Frame{Kind: evidence.Physical}
		f.Registers.Set(image.RIP, pc)
		s.Frames = append(s.Frames, f)
	}
	return s
}

// TestFold: one group represents all of its threads, so nothing that a group shows may differ
// between them. The judged and the failing thread stay alone.
func TestFold(t *testing.T) {
	stopped, deep, deeper, cut := stackOfPCs(1, 2), stackOfPCs(1, 2), stackOfPCs(1, 2), stackOfPCs(1, 2)
	stopped.Stopped = "no more"
	deep.Omitted, deep.OmittedAt = 5, 1
	deeper.Omitted, deeper.OmittedAt = 6, 1
	cut.Truncated = true
	same := stackOfPCs(1, 2)
	p := &image.Process{Threads: make([]image.Thread, 9), Failing: 4}
	walked := []unwind.Stack{same, same, stopped, same, same, stackOfPCs(1, 3), deep, deeper, cut}
	for _, c := range []struct {
		judged int
		all    bool
		want   string
	}{
		{4, false, "[[4] [0 1 3] [2] [5] [6] [7] [8]]"},
		{1, false, "[[1] [0 3] [2] [4] [5] [6] [7] [8]]"},
		{-1, false, "[[0 1 3] [2] [4] [5] [6] [7] [8]]"},
		{1, true, "[[1] [0] [2] [3] [4] [5] [6] [7] [8]]"},
	} {
		a := &stoppedProcess{process: p, separate: c.all}
		if c.judged >= 0 {
			a.thread = &p.Threads[c.judged]
		}
		var got [][]int
		for _, g := range a.fold(walked) {
			got = append(got, g.indexes)
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("judged %d, all %v: %s, want %s", c.judged, c.all, text, c.want)
		}
	}
}

func TestCutRecursion(t *testing.T) {
	for name, c := range map[string]struct {
		cycle             *unwind.Cycle
		omitted           int
		frames, left, cut int
	}{
		"no recursion":     {nil, 7, 30, 7, 20},
		"nothing left out": {&unwind.Cycle{First: 1, Period: 1}, 0, 30, 0, 20},
		"short turns":      {&unwind.Cycle{First: 1, Period: 1}, 7, 22, 15, 12},
		"long turns":       {&unwind.Cycle{First: 2, Period: 7}, 7, 26, 11, 16},
		"longer than kept": {&unwind.Cycle{First: 2, Period: 9}, 7, 30, 7, 20},
	} {
		s := stackOfPCs(make([]uint64, 30)...)
		s.Cycle, s.Omitted, s.OmittedAt = c.cycle, c.omitted, 20
		s.Frames[20].Registers.Set(image.RIP, 0x77)
		cutRecursion(&s)
		if len(s.Frames) != c.frames || s.Omitted != c.left || s.OmittedAt != c.cut || s.Frames[s.OmittedAt].PC() != 0x77 {
			t.Errorf("%s: %d frames, %d left out before %d; want %d, %d, %d", name, len(s.Frames), s.Omitted, s.OmittedAt, c.frames, c.left, c.cut)
		}
	}
}

func TestBystander(t *testing.T) {
	p := &image.Process{Threads: make([]image.Thread, 2), Failing: 1}
	p.Threads[0].Ref.Number, p.Threads[1].Ref.Number = 1, 2
	for _, c := range []struct {
		failing int
		thread  *image.Thread
		want    bool
	}{{1, &p.Threads[0], true}, {1, &p.Threads[1], false}, {1, nil, false}, {-1, &p.Threads[0], false}} {
		p.Failing = c.failing
		if got := (&stoppedProcess{process: p, thread: c.thread}).bystander(); got != c.want {
			t.Errorf("failing %d: %v, want %v", c.failing, got, c.want)
		}
	}
	p.Failing = 1
	a := newAnalysis(Request{})
	a.process, a.thread, a.waiting = p, &p.Threads[0], []failure.WaitText{{Kind: evidence.WaitMutex, Object: "0x10"}, {}}
	a.stacks = []*group{{threads: []*image.Thread{a.thread}, indexes: []int{0}}}
	a.result.Failure = evidence.Failure{Kind: evidence.NullPointer, Instruction: &evidence.Instruction{}, Site: &evidence.Site{Function: "ns::take(int)"}}
	a.describeBystander()
	f := a.result.Failure
	if want := "thread 1 was in ns::take when thread 2 failed; it waits for mutex 0x10"; f.Sentence != want || f.Kind != evidence.NoFailure || f.Instruction != nil {
		t.Errorf("%+v, want %q", f, want)
	}
}

// TestLookupPC: a return address may be the first address after its function.
func TestLookupPC(t *testing.T) {
	f := stackOfPCs(0x1000).Frames[0]
	if got := f.LookupPC(); got != 0x1000 {
		t.Errorf("an instruction is looked up at %v", got)
	}
	if f.Lookup = image.ReturnAddress; f.LookupPC() != 0xfff {
		t.Errorf("a return address is looked up at %v", f.LookupPC())
	}
}
