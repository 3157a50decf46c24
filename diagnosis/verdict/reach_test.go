package verdict

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// A fault counts as one after which the instruction ran again only if its own handler returned
// to that instruction. Each fault too many lets a run that ended too soon pass for a good one.
func TestRefaults(t *testing.T) {
	const pc, timer = 0x401010, 0x401050
	came := func(number unix.Signal, at uint64, place eventlog.SignalPlace) eventlog.Event {
		return eventlog.Event{Kind: eventlog.KindSignal, Object: uint64(number), Args: []uint64{uint64(place), at, 0, 0, 0, 0, 0x401200, 0, 0}}
	}
	fault := came(unix.SIGSEGV, pc, eventlog.PlaceFault)
	alarm := came(unix.SIGALRM, timer, eventlog.PlaceEvent)
	end := func(number unix.Signal, to evidence.Addr) eventlog.Event {
		return eventlog.Event{Kind: eventlog.KindSignalEnd, Object: uint64(number), Site: to}
	}
	for name, x := range map[string]struct {
		events []eventlog.Event
		want   uint64
	}{
		"the handler returned":                       {[]eventlog.Event{fault, end(unix.SIGSEGV, pc)}, 1},
		"it returned after the instruction":          {[]eventlog.Event{fault, end(unix.SIGSEGV, pc+3)}, 0},
		"it was left by a jump":                      {[]eventlog.Event{fault}, 0},
		"by a jump into another handler, which ends": {[]eventlog.Event{alarm, fault, end(unix.SIGALRM, timer)}, 0},
		"another signal came in the handler":         {[]eventlog.Event{fault, alarm, end(unix.SIGALRM, timer), end(unix.SIGSEGV, pc)}, 1},
		"the second came back":                       {[]eventlog.Event{fault, fault, end(unix.SIGSEGV, pc)}, 1},
	} {
		events := append([]eventlog.Event{{Kind: eventlog.KindStart, Object: 1, Args: []uint64{0, 4711, 0, 0, 0}}}, x.events...)
		rec := &record.Recording{Manifest: &record.Manifest{}, Log: eventLog(t, events)}
		rec.Manifest.Outcome.Thread = 1
		if got := refaults(rec, pc); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}

// eventLog is a log of events of thread 1.
func eventLog(t *testing.T, events []eventlog.Event) *eventlog.Log {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	err = eventlog.WriteLog(f, 4711, func(yield func(*eventlog.Event, error) bool) {
		for i := range events {
			events[i].Thread, events[i].Ticket = 1, uint64(i+1)
			if !yield(&events[i], nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.ReadLog(t.Context(), f.Name(), f, info.Size(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
