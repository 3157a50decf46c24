package eventlog

import (
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
)

func TestWithPreemptions(t *testing.T) {
	order := Schedule{{1, 3}, {2, 2}, {1, 2}, {2, 1}}
	hold := func(thread uint32, ordinal, until uint64) Preemption {
		return Preemption{Thread: thread, Ordinal: ordinal, Class: PointEvent, Until: until}
	}
	for _, x := range []struct {
		name string
		list []Preemption
		want string
	}{
		{"none", nil, "1 3\n2 2\n1 2\n2 1\n"},
		{"inside of a run", []Preemption{hold(1, 3, 4)}, "1 3\n2 1\n1 1\n2 1\n1 2\n2 1\n"},
		{"after its event at once", []Preemption{hold(1, 1, 0)}, "1 2\n1 2\n2 2\n1 2\n2 1\n"},
		{"before its next event", []Preemption{hold(1, 3, 100)}, "1 3\n2 2\n1 1\n1 2\n2 1\n"},
		{"after its last event", []Preemption{hold(1, 5, 100)}, "1 3\n2 2\n1 2\n2 1\n1 1\n"},
		{"for good", []Preemption{hold(1, 5, Never)}, "1 3\n2 2\n1 2\n2 1\n"},
		{"for good, and others after it", []Preemption{hold(1, 5, Never), hold(1, 5, 6)}, "1 3\n2 2\n1 2\n2 1\n"},
		{"for good, before a later event", []Preemption{hold(1, 3, Never)}, "1 3\n2 2\n1 1\n1 2\n2 1\n"},
		{"two at one position", []Preemption{hold(2, 2, 6), hold(1, 4, 5)}, "1 3\n2 2\n1 1\n2 1\n1 1\n1 1\n2 1\n"},
		{"the first of the list first", []Preemption{hold(2, 2, 6), hold(1, 5, 7)}, "1 3\n2 2\n1 1\n2 1\n1 2\n2 1\n"},
		{"of one step in their order", []Preemption{hold(1, 3, 5), hold(1, 3, 4)}, "1 3\n2 2\n1 2\n1 2\n2 1\n"},
	} {
		got, err := order.WithPreemptions(x.list)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		counts, plain := got.Events(), order.Events()
		if !strings.HasPrefix(x.name, "for good") {
			for _, p := range x.list {
				plain[p.Thread]++
			}
		} else if x.list[0].Ordinal == 3 {
			plain[1]++
		}
		if got.String() != x.want || counts[1] != plain[1] || counts[2] != plain[2] {
			t.Errorf("%s:\n%swant\n%s", x.name, got, x.want)
		}
	}
	for _, bad := range []Preemption{hold(1, 6, 0), hold(3, 1, 0)} {
		if _, err := order.WithPreemptions([]Preemption{bad}); err == nil {
			t.Errorf("%v is somewhere", bad)
		}
	}
}

// The points are after their events, and are no events of the log.
func TestImageWithPreemptions(t *testing.T) {
	l := mustReadLog(t, logBytes(t, sampleEvents()))
	s, _ := l.Schedule()
	f := new(memoryFile)
	list := []Preemption{{Thread: 2, Ordinal: 2, Class: PointPC, PC: 0x1234, Count: 3, Until: 5}, {Thread: 2, Ordinal: 2, Class: PointEvent, Until: 5}}
	image, err := l.WriteImage(f, s, ImageOptions{Preemptions: list})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := l.WriteImage(new(memoryFile), s, ImageOptions{})
	if err != nil || plain.Events != image.Events {
		t.Fatalf("%d events, without %d, %v", image.Events, plain.Events, err)
	}
	b := f.b[uint64(image.Threads[2].Start)-agent.EngineImage : uint64(image.Threads[2].End)-agent.EngineImage]
	var kinds []Kind
	for len(b) > 0 {
		e, n, err := DecodeEvent(b)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == KindPoint && (e.Flags != agent.EventExtra || len(e.Args) != 2) {
			t.Errorf("%+v", e)
		}
		kinds, b = append(kinds, e.Kind), b[n:]
	}
	if kinds[2] != KindPoint || kinds[3] != KindPoint || slices.Contains(kinds[4:], KindPoint) {
		t.Errorf("%v", kinds)
	}
	last := Preemption{Thread: 1, Ordinal: s.Events()[1], Class: PointEvent}
	for e := range l.Events(1) {
		if e.Ordinal == last.Ordinal && (e.Kind == KindExit || e.Kind == KindEnd) {
			if _, err := l.WriteImage(new(memoryFile), s, ImageOptions{Preemptions: []Preemption{last}}); err == nil {
				t.Error("a point after a thread's end")
			}
		}
	}
}
