package verdict

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// A fault counts as one after which the instruction ran again only if its own handler returned
// to that instruction. Each fault too many lets a run that ended too soon pass for a good one.
func TestRefaults(t *testing.T) {
	const pc, timer = 0x401010, 0x401050
	came := func(number unix.Signal, at uint64, place record.SignalPlace) record.Event {
		return record.Event{Kind: record.KindSignal, Object: uint64(number), Args: []uint64{uint64(place), at, 0, 0, 0, 0, 0x401200, 0, 0}}
	}
	fault := came(unix.SIGSEGV, pc, record.PlaceFault)
	alarm := came(unix.SIGALRM, timer, record.PlaceEvent)
	end := func(number unix.Signal, to evidence.Addr) record.Event {
		return record.Event{Kind: record.KindSignalEnd, Object: uint64(number), Site: to}
	}
	for name, x := range map[string]struct {
		events []record.Event
		want   uint64
	}{
		"the handler returned":                       {[]record.Event{fault, end(unix.SIGSEGV, pc)}, 1},
		"it returned after the instruction":          {[]record.Event{fault, end(unix.SIGSEGV, pc+3)}, 0},
		"it was left by a jump":                      {[]record.Event{fault}, 0},
		"by a jump into another handler, which ends": {[]record.Event{alarm, fault, end(unix.SIGALRM, timer)}, 0},
		"another signal came in the handler":         {[]record.Event{fault, alarm, end(unix.SIGALRM, timer), end(unix.SIGSEGV, pc)}, 1},
		"the second came back":                       {[]record.Event{fault, fault, end(unix.SIGSEGV, pc)}, 1},
	} {
		events := append([]record.Event{{Kind: record.KindStart, Object: 1, Args: []uint64{0, 4711, 0, 0, 0}}}, x.events...)
		w := &work{rec: &record.Recording{Manifest: &record.Manifest{}, Log: eventLog(t, events)}}
		w.rec.Manifest.Outcome.Thread = 1
		if got := w.refaults(pc); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}

// eventLog is a log of events of thread 1.
func eventLog(t *testing.T, events []record.Event) *record.Log {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	err = record.WriteLog(f, 4711, func(yield func(*record.Event, error) bool) {
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
	log, err := record.ReadLog(t.Context(), f.Name(), f, info.Size(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
