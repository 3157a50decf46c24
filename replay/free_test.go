package replay_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// experiment records a program of testdata/experiment.
func experiment(t *testing.T, name string) *record.Recording {
	t.Helper()
	p, err := recordtest.Read(filepath.Join("../internal/testdata/experiment", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, p.Record(t).Dir)
}

// TestFreeAsRecorded: a replay that may diverge from the recording, but has no reason to, does
// not.
func TestFreeAsRecorded(t *testing.T) {
	for _, p := range recordtest.Programs(t, "../internal/testdata/experiment") {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			rec := open(t, p.Record(t).Dir)
			strict, err := replay.Run(t.Context(), rec, replay.PlainRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r, err := replay.Run(t.Context(), rec, replay.FreeRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if r.Left != nil {
					t.Errorf("diverged from the recording: %v", r.Left)
				}
				if r.End != strict.End || r.Signal != strict.Signal || r.Status != strict.Status || r.Moment != strict.Moment || r.MadeUp != 0 {
					t.Errorf("ended with %s, %d, %d at %v, want %s, %d, %d at %v; %d results made up", r.End, r.Signal, r.Status, r.Moment,
						strict.End, strict.Signal, strict.Status, strict.Moment, r.MadeUp)
				}
			}
		})
	}
}

// ordinals returns the ordinals of a thread's events of a kind, or of a system call.
func ordinals(t *testing.T, rec *record.Recording, thread uint32, kind eventlog.Kind, object uint64) []uint64 {
	t.Helper()
	var list []uint64
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Thread == thread && e.Kind == kind && (object == 0 || e.Object == object) {
			list = append(list, e.Ordinal)
		}
	}
	if len(list) == 0 {
		t.Fatalf("thread %d has no event of kind %v", thread, kind)
	}
	return list
}

// reordered requests the recorded order with a thread held back.
func reordered(t *testing.T, rec *record.Recording, h replay.Hold) replay.FreeRequest {
	t.Helper()
	s, err := rec.Log.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return replay.FreeRequest{Schedule: replay.Reorder(s, h)}
}

// atEnd reads from the process at the recorded end.
func atEnd(t testing.TB, rec *record.Recording, read func(*replay.Stopped) error) {
	t.Helper()
	if _, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{AtEnd: read}}); err != nil {
		t.Fatal(err)
	}
}

// addressOf returns the address of a symbol in the program.
func addressOf(t testing.TB, rec *record.Recording, name string) (addr evidence.Addr) {
	t.Helper()
	atEnd(t, rec, func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		symbol, ok := p.SymbolNamed(name)
		if !ok {
			return fmt.Errorf("no symbol %s", name)
		}
		addr = symbol.Addr
		return nil
	})
	return addr
}

// wordAt returns a pointer of the program at the recorded end.
func wordAt(t *testing.T, rec *record.Recording, at evidence.Addr) evidence.Addr {
	t.Helper()
	var b [8]byte
	atEnd(t, rec, func(s *replay.Stopped) error {
		_, err := s.ReadMemory(at, b[:])
		return err
	})
	return evidence.Addr(binary.LittleEndian.Uint64(b[:]))
}

// hitsOf returns the writes to some words.
func hitsOf(t *testing.T, rec *record.Recording, w []replay.Watch) (hits []replay.Hit) {
	t.Helper()
	if _, err := replay.Run(t.Context(), rec, replay.WatchRequest{Watching: replay.Watching{Watches: w, OnHit: func(h *replay.Hit) error {
		hits = append(hits, *h)
		return nil
	}}}); err != nil {
		t.Fatal(err)
	}
	return hits
}

// fills reports whether a store wrote an A.
func fills(h *replay.Hit) bool {
	for shift := 0; shift < 64; shift += 8 {
		if byte(h.New>>shift) == 'A' && byte(h.Old>>shift) != 'A' {
			return true
		}
	}
	return false
}

// behindCall returns the first call of a function after a system call of the main thread.
func behindCall(t *testing.T, rec *record.Recording, function string, call uint64) evidence.Moment {
	t.Helper()
	return evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSyscall, call)[0], PC: addressOf(t, rec, function), Count: 1}
}

// passes is the end of each experiment that prevents the cause of the failure.
const passes = "exit 0"

func endText(r *replay.Result, err error) string {
	var stuck *replay.StuckError
	switch {
	case errors.As(err, &stuck):
		return "stuck: " + string(stuck.Cause)
	case err != nil:
		return err.Error()
	case r.End == replay.EndExit:
		return fmt.Sprintf("exit %d", r.Status)
	case r.End == replay.EndFailure:
		return unix.SignalName(unix.Signal(r.Signal))
	}
	return string(r.End)
}

const times = 10

// TestExperiments changes one thing, and the failure disappears, each time in the same way.
func TestExperiments(t *testing.T) {
	crashtest.TracesAccesses(t)
	const mutex = eventlog.KindMutex
	experiments := []struct {
		program, name string
		options       func(t *testing.T, rec *record.Recording) replay.FreeRequest
		end           string
	}{
		{"check_act", "act before take", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return reordered(t, rec, replay.Hold{Thread: 2, Ordinal: ordinals(t, rec, 2, mutex, 0)[0],
				Until: replay.EventOf{Thread: 1, Ordinal: ordinals(t, rec, 1, mutex, 0)[1]}})
		}, passes},
		{"lost_update", "write before read", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return reordered(t, rec, replay.Hold{Thread: 3, Ordinal: ordinals(t, rec, 3, mutex, 0)[0],
				Until: replay.EventOf{Thread: 2, Ordinal: ordinals(t, rec, 2, mutex, 0)[1]}})
		}, passes},
		{"use_before_init", "init before use", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return reordered(t, rec, replay.Hold{Thread: 2, Ordinal: ordinals(t, rec, 2, mutex, 0)[0],
				Until: replay.EventOf{Thread: 1, Ordinal: replay.AsFarAsItCan}})
		}, passes},
		{"lock_order", "one before the other", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return reordered(t, rec, replay.Hold{Thread: 3, Ordinal: ordinals(t, rec, 3, mutex, 0)[0],
				Until: replay.EventOf{Thread: 2, Ordinal: replay.AsFarAsItCan}})
		}, passes},
		{"lock_order_passes", "each has one", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return reordered(t, rec, replay.Hold{Thread: 2, Ordinal: ordinals(t, rec, 2, mutex, 0)[1],
				Until: replay.EventOf{Thread: 3, Ordinal: ordinals(t, rec, 3, mutex, 0)[0]}})
		}, "stuck: " + string(replay.StuckCycle)},
		{"handler_between", "later", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditDelaySignal,
				At:    evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSignal, 0)[0]},
				Until: ordinals(t, rec, 1, eventlog.KindSyscall, unix.SYS_GETPPID)[0]}}}
		}, passes},
		{"handler_between", "never", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditDelaySignal,
				At: evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSignal, 0)[0]}}}}
		}, passes},
		{"handler_between", "raised before", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return raisedAt(t, rec, ordinals(t, rec, 1, eventlog.KindSyscall, unix.SYS_SETITIMER)[0])
		}, passes},
		{"handlers_between", "later", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			o := replay.FreeRequest{}
			for _, at := range ordinals(t, rec, 1, eventlog.KindSignal, 0) {
				o.Edits = append(o.Edits, replay.Edit{Kind: replay.EditDelaySignal,
					At: evidence.Moment{Thread: 1, Ordinal: at}, Until: ordinals(t, rec, 1, eventlog.KindSyscall, unix.SYS_GETPPID)[0]})
			}
			return o
		}, passes},
		{"handler_fails", "never", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditDelaySignal,
				At: evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSignal, 0)[0]}}}}
		}, passes},
		{"overflow", "stores undone", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			buffer := wordAt(t, rec, addressOf(t, rec, "buffer"))
			o := replay.FreeRequest{}
			for at := evidence.Addr(16); at < 40; at += 8 { // the guard of the buffer, and the name
				o.Watches = append(o.Watches, replay.Watch{Addr: buffer + at, Size: 8, Writes: true})
			}
			for _, h := range hitsOf(t, rec, o.Watches) {
				if h.By == evidence.ByProgram && fills(&h) {
					o.Edits = append(o.Edits, replay.Edit{Kind: replay.EditUndo, OnHit: true, Hit: h.Number})
				}
			}
			if len(o.Edits) == 0 {
				t.Fatal("no store to the name")
			}
			return o
		}, passes},
		{"overflow", "padded", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditPad, At: behindCall(t, rec, "malloc", unix.SYS_GETPPID), Bytes: 64}}}
		}, passes},
		{"use_after_free", "free withheld", func(t *testing.T, rec *record.Recording) replay.FreeRequest {
			return replay.FreeRequest{Edits: []replay.Edit{{Kind: replay.EditKeepFreed, At: behindCall(t, rec, "free", unix.SYS_GETPPID)}}}
		}, passes},
	}
	recordings := map[string]*record.Recording{}
	for _, x := range experiments {
		if recordings[x.program] == nil {
			recordings[x.program] = experiment(t, x.program)
		}
		t.Run(x.program+"/"+x.name, func(t *testing.T) {
			rec := recordings[x.program]
			options := x.options(t, rec)
			var first *replay.Result
			for i := range times {
				r, err := replay.Run(t.Context(), rec, options)
				if got := endText(r, err); got != x.end {
					t.Fatalf("replay %d of %d ends with %s, want %s", i+1, times, got, x.end)
				}
				if first == nil {
					first = r
					t.Logf("%d events of %d, %d results made up; left: %v", r.Events, r.Total, r.MadeUp, r.Left)
				}
				if r.Events != first.Events || r.MadeUp != first.MadeUp || r.Moment != first.Moment || fmt.Sprint(r.Left) != fmt.Sprint(first.Left) {
					t.Errorf("replay %d of %d: %d events, %d made up, at %v, left %v; the first: %d, %d, %v, %v", i+1, times,
						r.Events, r.MadeUp, r.Moment, r.Left, first.Events, first.MadeUp, first.Moment, first.Left)
				}
			}
		})
	}
}

// TestExperimentsThatGoOn: a run that would never end is ended, and the reason is reported.
func TestExperimentsThatGoOn(t *testing.T) {
	crashtest.TracesAccesses(t)
	rec := experiment(t, "goes_on")
	for _, x := range []struct{ how, end string }{
		{"computes", "stuck: "},
		{"asks", "stuck: " + string(replay.StuckEvents)},
		{"waits", string(replay.EndIdle)},
	} {
		t.Run(x.how, func(t *testing.T) {
			how := addressOf(t, rec, x.how)
			free := behindCall(t, rec, "free", unix.SYS_GETPPID)
			r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Common: replay.Common{Computing: 2 * time.Second,
				Hooks: []replay.Hook{{At: evidence.Moment{Thread: 1, Ordinal: free.Ordinal}, Do: func(s *replay.Stopped) error {
					p, err := s.Process()
					if err != nil {
						return err
					}
					computes, ok := p.SymbolNamed("computes")
					if !ok {
						return errors.New("no symbol computes")
					}
					var b [4]byte
					if _, err := s.ReadMemory(how, b[:]); err != nil {
						return err
					}
					return replay.Write(s, computes.Addr, b[:])
				}}}}, Edits: []replay.Edit{{Kind: replay.EditKeepFreed, At: free}}})
			if got := endText(r, err); got != x.end {
				t.Errorf("ends with %s, want %s", got, x.end)
			}
			if x.how == "waits" && err == nil && (len(r.Idle) != 1 || r.Idle[0].Waits != "the result of poll") {
				t.Errorf("waits: %+v", r.Idle)
			}
		})
	}
}

func TestReorder(t *testing.T) {
	of := func(thread uint32, ordinal uint64) replay.EventOf {
		return replay.EventOf{Thread: thread, Ordinal: ordinal}
	}
	schedule := func(text string) eventlog.Schedule {
		s, err := eventlog.ParseSchedule(strings.ReplaceAll(text, ", ", "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const recorded = "1 3, 2 2, 1 2, 2 1, 3 1"
	for _, x := range []struct {
		hold replay.Hold
		want string
	}{
		{replay.Hold{Thread: 2, Ordinal: 2, Until: of(1, 4)}, "1 3, 2 1, 1 1, 2 1, 1 1, 2 1, 3 1"},
		{replay.Hold{Thread: 2, Ordinal: 1, Until: of(3, 1)}, "1 5, 3 1, 2 3"},
		{replay.Hold{Thread: 2, Ordinal: 1, Until: of(1, 7)}, "1 5, 1 2, 2 3, 3 1"},
		{replay.Hold{Thread: 2, Ordinal: 9, Until: of(1, 1)}, recorded},
		{replay.Hold{Thread: 2, Ordinal: 1, Until: of(4, 0)}, recorded},
	} {
		if got := replay.Reorder(schedule(recorded), x.hold); got.String() != schedule(x.want).String() {
			t.Errorf("%+v: %v, want %v", x.hold, got, x.want)
		}
	}
}

// TestFaultElsewhere: an instruction that faults while a probe has a copy of it elsewhere faults at
// its own address. The recorded signal arrived there. The pointer that the instruction follows is
// made invalid before.
func TestFaultElsewhere(t *testing.T) {
	crashtest.TracesAccesses(t)
	rec := experiment(t, "spins")
	signals := ordinals(t, rec, 1, eventlog.KindSignal, 0)
	spin, cell := addressOf(t, rec, "spin"), addressOf(t, rec, "cell")
	at := evidence.Moment{Thread: 1, Ordinal: ordinals(t, rec, 1, eventlog.KindSyscall, unix.SYS_GETPPID)[0]}
	if at.Ordinal+1 != signals[0] {
		t.Skipf("a signal at event %d came before the thread was where it spins", signals[0])
	}
	wild := replay.Hook{At: at, Do: func(s *replay.Stopped) error {
		return replay.Write(s, cell, []byte{8, 0, 0, 0, 0, 0, 0, 0})
	}}
	var diverged *replay.DivergenceError
	_, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Hooks: []replay.Hook{wild}}})
	if !errors.As(err, &diverged) || diverged.Signal != int(unix.SIGSEGV) || diverged.PC != spin {
		t.Errorf("%v, want SIGSEGV at %v", err, spin)
	}
	r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Common: replay.Common{Hooks: []replay.Hook{wild}}})
	if err != nil || r.End != replay.EndFailure || r.Signal != int(unix.SIGSEGV) || r.Moment.PC != spin {
		t.Errorf("free: %+v, %v, want SIGSEGV at %v", r, err, spin)
	}
}

// raisedAt raises the first signal of a recording when its thread has done the given event.
func raisedAt(t *testing.T, rec *record.Recording, ordinal uint64) replay.FreeRequest {
	t.Helper()
	at := ordinals(t, rec, 1, eventlog.KindSignal, 0)[0]
	for e, err := range rec.Log.Events(1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Ordinal == at {
			return replay.FreeRequest{
				Common: replay.Common{Hooks: []replay.Hook{{At: evidence.Moment{Thread: 1, Ordinal: ordinal}, Do: func(s *replay.Stopped) error { return s.Raise(e) }}}},
				Edits:  []replay.Edit{{Kind: replay.EditDelaySignal, At: evidence.Moment{Thread: 1, Ordinal: at}, Until: ordinal, Raised: true}}}
		}
	}
	t.Fatalf("no event %d", at)
	return replay.FreeRequest{}
}
