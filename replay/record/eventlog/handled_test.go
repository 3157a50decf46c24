package eventlog

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// TestHandled finds the handlers that did not return. The events are of nested handlers, some
// of which are left by jumps.
func TestHandled(t *testing.T) {
	came := func(number, pc uint64) Event {
		return Event{Thread: 1, Kind: KindSignal, Object: number, Args: []uint64{uint64(PlaceFault), pc, 0, 0, 0, 0, 0x401200, 0, 0}}
	}
	returned := func(number, pc uint64) Event {
		return Event{Thread: 1, Kind: KindSignalEnd, Object: number, Site: evidence.Addr(pc)}
	}
	for _, x := range []struct {
		name   string
		events []Event
		want   []uint64 // the ordinals of the signals; the thread's start is event 1
	}{
		{"nested and returned", []Event{came(10, 0x10), came(12, 0x20), returned(12, 0x20), returned(10, 0x10)}, nil},
		{"in the inner handler", []Event{came(10, 0x10), came(12, 0x20)}, []uint64{2, 3}},
		{"a jump into the outer handler, which returned", []Event{came(10, 0x10), came(11, 0x20), returned(10, 0x10)}, []uint64{3}},
		{"a jump out of two, another handler returned", []Event{came(10, 0x10), came(11, 0x20), came(12, 0x30), returned(12, 0x30)}, []uint64{2, 3}},
		{"a jump out, the same signal there again", []Event{came(11, 0x20), came(11, 0x20), returned(11, 0x20)}, []uint64{2}},
		{"the handler moved the instruction", []Event{came(10, 0x10), came(11, 0x20), returned(11, 0x24)}, []uint64{2}},
		{"an end of no signal", []Event{came(10, 0x10), returned(12, 0x20)}, []uint64{2}},
	} {
		t.Run(x.name, func(t *testing.T) {
			events := append([]Event{{Thread: 1, Kind: KindStart, Object: 1, Args: []uint64{0, 4711, 0, 0, 0}}}, x.events...)
			for i := range events {
				events[i].Ticket = uint64(i + 1)
			}
			log := mustReadLog(t, logBytes(t, events))
			list, err := log.Handled(1)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, s := range list {
				got = append(got, s.Ordinal)
				if s.Handler != 0x401200 {
					t.Errorf("the handler of event %d is %v", s.Ordinal, s.Handler)
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("events %v, want %v", got, x.want)
			}
			var rest []uint64
			for i := range events {
				if events[i].Kind == KindSignal && !slices.Contains(x.want, uint64(i+1)) {
					rest = append(rest, uint64(i+1))
				}
			}
			got = nil
			if err := log.Returned(1, func(s *HandledSignal, _ evidence.Addr) { got = append(got, s.Ordinal) }); err != nil {
				t.Fatal(err)
			}
			if slices.Sort(got); !slices.Equal(got, rest) {
				t.Errorf("events %v returned, want %v", got, rest)
			}
		})
	}
}
