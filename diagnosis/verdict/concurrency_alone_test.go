package verdict

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/record/eventlog"
)

// TestAwaited: a signal that is ignored or left to the kernel has no handler that could run.
func TestAwaited(t *testing.T) {
	const handler, asked, out = 0x401000, 0x7ffd_0000, 0x7ffd_0100
	// call sets a signal's action; old is the handler that it returns as the old one, -1 if it
	// returns none.
	call := func(signal unix.Signal, act uint64, old int64) *eventlog.Event {
		e := &eventlog.Event{Kind: eventlog.KindSyscall, Object: unix.SYS_RT_SIGACTION, Args: []uint64{uint64(signal), act, 0, 8}}
		if old >= 0 {
			e.Args[2] = out
			e.Payloads = []eventlog.Payload{{Addr: out, Kind: eventlog.PayloadOut, Data: binary.LittleEndian.AppendUint64(nil, uint64(old))}}
		}
		return e
	}
	for _, c := range []struct {
		what   string
		events []*eventlog.Event
		end    map[uint64]uint64 // handlers at the end; nil: they are not known
		want   []string
	}{
		{"SIGPIPE is ignored", []*eventlog.Event{call(unix.SIGPIPE, asked, 0)}, map[uint64]uint64{13: 1}, nil},
		{"SIGPIPE is left to the kernel again", []*eventlog.Event{call(unix.SIGPIPE, asked, 0), call(unix.SIGPIPE, asked, 1)}, map[uint64]uint64{13: 0}, nil},
		{"a handler stays", []*eventlog.Event{call(unix.SIGALRM, asked, 0)}, map[uint64]uint64{14: handler}, []string{"SIGALRM"}},
		{"a handler was taken back", []*eventlog.Event{call(unix.SIGALRM, asked, 0), call(unix.SIGALRM, asked, handler)}, map[uint64]uint64{14: 0}, []string{"SIGALRM"}},
		{"one of two", []*eventlog.Event{call(unix.SIGPIPE, asked, 0), call(unix.SIGTERM, asked, 0)}, map[uint64]uint64{13: 1, 15: handler}, []string{"SIGTERM"}},
		{"it is only asked for", []*eventlog.Event{call(unix.SIGALRM, 0, 0)}, map[uint64]uint64{14: 0}, nil},
		{"what replaces a handler does not ask for it", []*eventlog.Event{call(unix.SIGALRM, asked, -1), call(unix.SIGALRM, asked, -1)},
			map[uint64]uint64{14: 0}, []string{"SIGALRM"}},
		{"the end is not known", []*eventlog.Event{call(unix.SIGALRM, asked, 0)}, nil, []string{"SIGALRM"}},
	} {
		events := func(yield func(*eventlog.Event, error) bool) {
			for _, e := range c.events {
				if !yield(e, nil) {
					return
				}
			}
		}
		atEnd := func(number uint64) (uint64, bool) { h, ok := c.end[number]; return h, ok }
		if got := awaitedOf(events, atEnd); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
