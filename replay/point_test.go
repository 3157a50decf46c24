package replay_test

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

const marks = 4 // of testdata/schedule/marks.c

// marked is a recording of testdata/schedule/marks.c.
type marked struct {
	rec         *record.Recording
	mark, order evidence.Addr
	// steps are those in which each thread has its marks: in its own code, and in the handler.
	steps [2][]markStep
}

// markStep is a step with marks. It begins at a position of the order, after the given event of
// its thread, and ends with the event at another position.
type markStep struct {
	thread     uint32
	ordinal    uint64
	begin, end uint64
}

// recordMarks records until the steps are as the program intends, which a machine under load may
// prevent.
func recordMarks(t *testing.T) *marked {
	t.Helper()
	p, err := recordtest.Read("../internal/testdata/schedule/marks.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := p.Build(t)
	for range 20 {
		m := readMarks(t, recordtest.RecordProgram(t, exe, nil, "", p.Ends).Dir)
		if m.together(0) && m.together(1) {
			return m
		}
	}
	t.Skip("the threads of a recording do not run at the same time here")
	return nil
}

func readMarks(t *testing.T, dir string) *marked {
	t.Helper()
	m := &marked{}
	var err error
	if m.rec, err = record.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.rec.Close() })
	core, err := image.OpenCore(filepath.Join(m.rec.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	m.mark, m.order = symbol(t, core, "mark"), symbol(t, core, "order")
	position := uint64(0)
	sleeps := map[uint32]int{}
	for e, err := range m.rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		position++
		if e.Kind != eventlog.KindSyscall || e.Object != unix.SYS_CLOCK_NANOSLEEP {
			continue
		}
		n := sleeps[e.Thread]
		sleeps[e.Thread]++
		steps := &m.steps[min(n/2, 1)]
		if n%2 == 0 {
			*steps = append(*steps, markStep{e.Thread, e.Ordinal, position, 0})
			continue
		}
		i := slices.IndexFunc(*steps, func(s markStep) bool { return s.thread == e.Thread })
		(*steps)[i].end = position
	}
	if len(m.steps[0]) != 3 || len(m.steps[1]) != 3 {
		t.Fatalf("the threads slept %v times", sleeps)
	}
	return m
}

// together reports whether all steps have begun before one ends.
func (m *marked) together(which int) bool {
	return m.all(which) < slices.MinFunc(m.steps[which], func(a, b markStep) int { return cmp.Compare(a.end, b.end) }).end
}

// all returns the position at which all steps have begun.
func (m *marked) all(which int) uint64 {
	last := uint64(0)
	for _, s := range m.steps[which] {
		last = max(last, s.begin)
	}
	return last
}

// replay returns the marks.
func (m *marked) replay(t *testing.T, request replay.Request) (string, *replay.Result, error) {
	t.Helper()
	left := make([]byte, 64)
	r, err := replay.Run(t.Context(), m.rec, replay.WithAtEnd(request, func(s *replay.Stopped) error {
		_, err := s.ReadMemory(m.order, left)
		return err
	}))
	return string(bytes.TrimRight(left, "\x00")), r, err
}

// stop is a preemption of the thread whose step is the nth of three, after that many marks; after
// none it is a hold.
type stop struct{ nth, behind int }

// expect returns preemptions, all of which end when all steps have begun, in the order of the
// list, and the marks that result.
func (m *marked) expect(which int, class eventlog.PointClass, stops []stop) ([]eventlog.Preemption, string) {
	list := []eventlog.Preemption{} // none, instead of those of the recording
	done := map[int]int{}
	var begun, then strings.Builder
	leave := func(b *strings.Builder, nth, n int) {
		first := byte('a')
		if which == 1 {
			first = 'A'
		}
		b.WriteString(strings.Repeat(string(first+byte(m.steps[which][nth].thread-2)), n-done[nth]))
		done[nth] = n
	}
	for nth := range m.steps[which] {
		first := marks
		if i := slices.IndexFunc(stops, func(s stop) bool { return s.nth == nth }); i >= 0 {
			first = stops[i].behind
		}
		leave(&begun, nth, first)
	}
	since := map[int]int{}
	for i, s := range stops {
		step := m.steps[which][s.nth]
		p := eventlog.Preemption{Thread: step.thread, Ordinal: step.ordinal, Class: eventlog.PointEvent, Until: m.all(which)}
		if s.behind > 0 {
			p.Class, p.Count = class, uint64(s.behind-since[s.nth]+1)
			if class == eventlog.PointPC {
				p.PC = m.mark
			}
			if since[s.nth] > 0 {
				p.Count--
			}
		}
		since[s.nth] = s.behind
		list = append(list, p)
		next := marks
		if j := slices.IndexFunc(stops[i+1:], func(x stop) bool { return x.nth == s.nth }); j >= 0 {
			next = stops[i+1+j].behind
		}
		leave(&then, s.nth, next)
	}
	return list, begun.String() + then.String()
}

// Each preemption produces another order of the marks, the same one each time.
func TestPreemptions(t *testing.T) {
	m := recordMarks(t)
	for name, stops := range map[string][]stop{
		"none":                        {},
		"a hold":                      {{0, 0}},
		"two holds":                   {{0, 0}, {1, 0}},
		"two holds, the second first": {{1, 0}, {0, 0}},
		"after a mark":                {{0, 1}},
		"after three marks":           {{0, 3}},
		"the last thread":             {{2, 2}},
		"two threads":                 {{1, 2}, {0, 2}},
		"three threads":               {{2, 1}, {0, 3}, {1, 2}},
		"twice":                       {{0, 1}, {1, 2}, {0, 3}},
		"a hold, then a mark":         {{0, 0}, {1, 1}, {0, 2}, {1, 3}},
	} {
		for which, where := range []string{"code", "handler"} {
			for _, class := range []eventlog.PointClass{eventlog.PointPC, eventlog.PointCode} {
				t.Run(name+", "+where+", "+string(class), func(t *testing.T) { m.tenTimes(t, which, class, record.TimingEager, stops) })
			}
			if name == "three threads" { // in a lazy replay, a step without a preemption runs late
				t.Run(name+", "+where+", lazy", func(t *testing.T) { m.tenTimes(t, which, eventlog.PointPC, record.TimingLazy, stops) })
			}
		}
	}
}

func (m *marked) tenTimes(t *testing.T, which int, class eventlog.PointClass, timing record.Timing, stops []stop) {
	list, want := m.expect(which, class, stops)
	for i := range 10 {
		got, r, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: timing, Preemptions: list}})
		if err != nil || r.End != replay.EndExit {
			t.Fatalf("replay %d: %v", i+1, err)
		}
		if got = got[which*3*marks:][:3*marks]; got != want {
			t.Fatalf("replay %d: %s, want %s: %v", i+1, got, want, list)
		}
	}
}

// A place that the thread does not reach is a divergence that names the place.
func TestPreemptionIsMissed(t *testing.T) {
	m := recordMarks(t)
	list, _ := m.expect(0, eventlog.PointPC, []stop{{1, 2}})
	list[0].Count = marks + 1
	_, _, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}})
	var d *replay.DivergenceError
	if !errors.As(err, &d) || d.Moment.Thread != list[0].Thread || d.Moment.Ordinal != list[0].Ordinal+1 ||
		!strings.Contains(err.Error(), "a preemption at "+m.mark.String()) {
		t.Fatalf("%v", err)
	}
	// A free replay continues from there.
	r, err := replay.Run(t.Context(), m.rec, replay.FreeRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}})
	if err != nil || r.End != replay.EndExit || r.Left == nil {
		t.Fatalf("free: %+v, %v", r, err)
	}
	list[0].Ordinal = 1 << 20
	var bad *replay.InputError
	if _, _, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list}}); !errors.As(err, &bad) {
		t.Fatalf("after an event that does not exist: %v", err)
	}
}

// Preemptions that a search has found are used by every replay.
func TestPreemptionsAreFound(t *testing.T) {
	m := recordMarks(t)
	list, want := m.expect(0, eventlog.PointPC, []stop{{1, 2}, {0, 1}})
	if err := m.rec.SetFound(&record.Found{Timing: record.TimingEager, Preemptions: list, By: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []replay.Request{replay.PlainRequest{}, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager}}, replay.FreeRequest{}} {
		if got, _, err := m.replay(t, o); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s, want %s, %v", o, got, want, err)
		}
	}
	plain, _, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Preemptions: []eventlog.Preemption{}}})
	if _, ordered := m.expect(0, eventlog.PointPC, nil); err != nil || !strings.HasPrefix(plain, ordered) {
		t.Errorf("without: %s, %v", plain, err)
	}
}

// Moments belong to the log: they continue to count after a preemption at the same instruction.
func TestMomentsBesidePreemptions(t *testing.T) {
	m := recordMarks(t)
	list, _ := m.expect(0, eventlog.PointPC, []stop{{0, 1}, {1, 2}, {0, 3}})
	step := m.steps[0][0]
	for count := uint64(1); count <= marks; count++ {
		var seen []byte
		hook := replay.Hook{At: evidence.Moment{Thread: step.thread, Ordinal: step.ordinal, PC: m.mark, Count: count}, Do: func(s *replay.Stopped) error {
			seen = make([]byte, 64)
			_, err := s.ReadMemory(m.order, seen)
			return err
		}}
		_, _, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list, Hooks: []replay.Hook{hook}}})
		own := byte('a' + step.thread - 2)
		if err != nil || bytes.Count(seen, []byte{own}) != int(count)-1 {
			t.Errorf("at arrival %d: %s, %v", count, seen, err)
		}
	}
}

// Preemptions work together with signals that arrive at an instruction in the same thread.
func TestPreemptionsBesideSignals(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/schedule/interrupted.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := p.Build(t)
	for range 10 {
		m := &marked{}
		dir := recordtest.RecordProgram(t, exe, nil, "", p.Ends).Dir
		if m.rec, err = record.Open(dir); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.rec.Close() })
		core, err := image.OpenCore(filepath.Join(dir, record.CoreName), image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.mark, m.order = symbol(t, core, "mark"), symbol(t, core, "order")
		core.Close()
		if list, want := interruptedPlan(t, m); list != nil {
			for i := range 10 {
				got, r, err := m.replay(t, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list, Computing: 5 * time.Second}})
				var stuck *replay.StuckError
				if i == 0 && errors.As(err, &stuck) {
					break // the signal came before a mark
				}
				if err != nil || r.End != replay.EndExit || got != want {
					t.Fatalf("replay %d: %s, want %s: %v", i+1, got, want, err)
				}
				if i == 9 {
					return
				}
			}
		}
	}
	t.Skip("no signal came between two instructions here")
}

// interruptedPlan keeps the second thread before its first mark, in the step that the signal ends,
// until the third has left one; and before the mark after the signal, until the third has
// finished. nil: the recording does not have these steps.
func interruptedPlan(t *testing.T, m *marked) ([]eventlog.Preemption, string) {
	const computes, leaves = 2, 3
	sleeps, next := map[uint32]markStep{}, map[uint32]uint64{}
	var async bool
	var first, back, position, returned uint64 // ordinals, and positions
	for e, err := range m.rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		position++
		switch {
		case e.Kind == eventlog.KindSyscall && e.Object == unix.SYS_CLOCK_NANOSLEEP && sleeps[e.Thread].begin == 0:
			sleeps[e.Thread] = markStep{e.Thread, e.Ordinal, position, 0}
		case sleeps[e.Thread].begin != 0 && next[e.Thread] == 0:
			next[e.Thread] = position
		}
		switch {
		case e.Kind == eventlog.KindSignal && first == 0:
			first, async = e.Ordinal, e.Thread == computes && e.Args[0] == agent.SignalAsync
		case e.Kind == eventlog.KindSignalEnd && back == 0:
			back, returned = e.Ordinal, position
		}
	}
	if !async || back == 0 || first != sleeps[computes].ordinal+1 ||
		sleeps[leaves].begin == 0 || sleeps[leaves].begin > returned-2 || next[leaves] < returned+1 {
		return nil, ""
	}
	begun := max(sleeps[leaves].begin, sleeps[computes].begin)
	return []eventlog.Preemption{
		{Thread: computes, Ordinal: sleeps[computes].ordinal, Class: eventlog.PointPC, PC: m.mark, Count: 1, Until: begun},
		{Thread: leaves, Ordinal: sleeps[leaves].ordinal, Class: eventlog.PointPC, PC: m.mark, Count: 2, Until: returned},
		{Thread: computes, Ordinal: back, Class: eventlog.PointPC, PC: m.mark, Count: 1, Until: returned},
	}, "baabbbaa"
}
