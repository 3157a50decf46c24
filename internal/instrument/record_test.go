package instrument_test

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// passed reads how many points each thread has reached since its last event.
func passed(t *testing.T, threads uint32, read func(addr evidence.Addr, p []byte) (int, error)) []uint64 {
	t.Helper()
	var raw agent.RawRThread
	counts := make([]uint64, threads+1)
	for i := uint32(1); i <= threads; i++ {
		word := func(offset uintptr) uint64 {
			p := make([]byte, 8)
			if _, err := read(evidence.Addr(agent.EngineThreads+uint64(i)*agent.ThreadSlot+uint64(offset)), p); err != nil {
				t.Fatalf("thread %d: %v", i, err)
			}
			return binary.LittleEndian.Uint64(p)
		}
		counts[i] = word(unsafe.Offsetof(raw.PointsStart)) - word(unsafe.Offsetof(raw.Points))
	}
	return counts
}

// TestPointsAreTheSame records programs of each compiler and counts their points
// in the recording and in replays.
func TestPointsAreTheSame(t *testing.T) {
	for name, both := range compilers(t) {
		t.Run(name, func(t *testing.T) {
			plugin := instrumented(t, both[0], filepath.Join(programs, "plugin.c"))
			exe := instrumented(t, both[0], filepath.Join(programs, "threads.c"), "-O1")
			dir := recordtest.RecordProgram(t, exe, []string{plugin}, "", "SIGSEGV").Dir
			const threads, last = 4, 1000 // of threads.c
			core, err := image.OpenCore(filepath.Join(dir, record.CoreName), image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer core.Close()
			want := passed(t, threads, core.ReadMemory)
			if want[1] < last {
				t.Errorf("the main thread came to %d points in a stretch of %d rounds", want[1], last)
			}
			rec, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			for range 3 {
				var got []uint64
				r, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{AtEnd: func(s *replay.Stopped) error {
					got = passed(t, threads, s.ReadMemory)
					return nil
				}}, Verify: true})
				if err != nil || r.End != replay.EndFailure {
					t.Fatalf("the replay ended with %+v, %v", r, err)
				}
				if text := recordtest.Differences(r); text != "" {
					t.Error(text)
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("thread %d came to %d points, and to %d in the recording", i, got[i], want[i])
					}
				}
			}
		})
	}
}

// lost is a recording of lost.c, and where its counters are.
type lost struct {
	rec            *record.Recording
	counter, exact evidence.Addr
	first          eventlog.Preemption // of the thread that yields first, at its first point
	begin, end     uint64              // positions: both have begun, one has ended
	counted        uint64              // what the counter was when the recorded run ended
}

// allCounted is the counter if no thread lost what the other one wrote.
const allCounted = 20

// recordLost records until both threads were between their events at once, which
// a machine under load may prevent, and until none lost what the other one wrote.
func recordLost(t *testing.T, compiler string) *lost {
	t.Helper()
	exe := instrumented(t, compiler, filepath.Join(programs, "lost.c"), "-O1")
	for range 20 {
		if l := openLost(t, recordtest.RecordProgram(t, exe, nil, "", "exit 0").Dir); l.begin < l.end && l.counted == allCounted {
			return l
		}
	}
	t.Skip("the threads of a recording do not run at the same time here")
	return nil
}

func openLost(t *testing.T, dir string) *lost {
	t.Helper()
	l := &lost{end: ^uint64(0)}
	var err error
	if l.rec, err = record.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.rec.Close() })
	core, err := image.OpenCore(filepath.Join(dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	for name, at := range map[string]*evidence.Addr{"counter": &l.counter, "exact": &l.exact} {
		s, found := core.SymbolNamed(name)
		if !found {
			t.Fatalf("no symbol %s", name)
		}
		*at = s.Addr
	}
	p := make([]byte, 8)
	if n, err := core.ReadMemory(l.counter, p); err != nil || n < len(p) {
		t.Fatalf("the counter in the core: %d bytes, %v", n, err)
	}
	l.counted = binary.LittleEndian.Uint64(p)
	position := uint64(0)
	for e, err := range l.rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		position++
		switch {
		case e.Kind != eventlog.KindSyscall:
		case e.Object == unix.SYS_SCHED_YIELD:
			l.begin = position
			if l.first.Thread == 0 {
				l.first = eventlog.Preemption{Thread: e.Thread, Ordinal: e.Ordinal, Class: eventlog.PointCode, Count: 1}
			}
		case e.Object == unix.SYS_CLOCK_NANOSLEEP:
			l.end = min(l.end, position)
		}
	}
	// Until the other thread is at the end of its step: the next event is its.
	l.first.Until = l.begin
	return l
}

// replay returns what the counters are at the end.
func (l *lost) replay(t *testing.T, verify bool, list []eventlog.Preemption) (counter, exact uint64, err error) {
	t.Helper()
	p := make([]byte, 8)
	read := func(s *replay.Stopped, at evidence.Addr) (uint64, error) {
		_, err := s.ReadMemory(at, p)
		return binary.LittleEndian.Uint64(p), err
	}
	r, err := replay.Run(t.Context(), l.rec, replay.PlainRequest{Common: replay.Common{Timing: record.TimingEager, Preemptions: list, AtEnd: func(s *replay.Stopped) error {
		var errs [2]error
		counter, errs[0] = read(s, l.counter)
		exact, errs[1] = read(s, l.exact)
		return errors.Join(errs[:]...)
	}}, Verify: verify})
	if err == nil && verify && recordtest.Differences(r) != "" {
		t.Error(recordtest.Differences(r))
	}
	return counter, exact, err
}

// TestEnteredAtEachPoint has a thread enter the engine at every one of its points, and continue at
// once: at the end the process does not differ.
func TestEnteredAtEachPoint(t *testing.T) {
	for name, both := range compilers(t) {
		t.Run(name, func(t *testing.T) {
			l := recordLost(t, both[0])
			l.first.Until = 0
			var list []eventlog.Preemption
			for range 15 { // a compiler may leave the read out that is right before a write
				list = append(list, l.first)
			}
			counter, exact, err := l.replay(t, true, list)
			if err != nil || counter != 20 || exact != 20 {
				t.Errorf("counted %d and %d: %v", counter, exact, err)
			}
		})
	}
}

// TestPreemptedAtPoints preempts a thread at each of its first points until the other is done: between
// a read and a write of the counter what the other one wrote is lost, and nowhere else.
func TestPreemptedAtPoints(t *testing.T) {
	l := recordLost(t, compilersFirst(t))
	p := l.first
	results := map[uint64]int{}
	for p.Count = 1; p.Count <= 12; p.Count++ {
		counter, exact, err := l.replay(t, false, []eventlog.Preemption{p})
		if err != nil || exact != 20 {
			t.Fatalf("%v: %d, %v", p, exact, err)
		}
		results[counter]++
	}
	if results[20] == 0 || results[10] == 0 || results[20]+results[10] != 12 {
		t.Errorf("the counter was %v", results)
	}
}

func compilersFirst(t *testing.T) string {
	t.Helper()
	all := compilers(t)
	for _, name := range []string{"gcc", "clang"} {
		if both, found := all[name]; found {
			return both[0]
		}
	}
	return ""
}

// TestAccessesAreTheProgramsOwn watches a word that atomic operations change: each
// is an access of the function that made it, not of the runtime.
func TestAccessesAreTheProgramsOwn(t *testing.T) {
	crashtest.TracesAccesses(t)
	l := recordLost(t, compilersFirst(t))
	core, err := image.OpenCore(filepath.Join(l.rec.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	var pcs []evidence.Addr
	for _, backend := range []replay.Backend{replay.BackendPtrace, replay.BackendBPF, replay.BackendProbe} {
		hits := 0
		_, err := replay.Run(t.Context(), l.rec, replay.WatchRequest{Common: replay.Common{Timing: record.TimingEager}, Watching: replay.Watching{Backend: backend, Probes: pcs,
			Watches: []replay.Watch{{Addr: l.exact, Size: 8}}, OnHit: func(h *replay.Hit) error {
				if hits++; hits == 1 && pcs == nil {
					pcs = append(pcs, h.PC)
				}
				if s, found := core.SymbolAt(h.Caller); !found || s.Name != "add" {
					t.Errorf("%s: an access at %v, called from %v", backend, h.PC, h.Caller)
				}
				return nil
			}}})
		var unsupported *replay.UnsupportedError
		if errors.As(err, &unsupported) {
			t.Log(err)
			continue
		}
		if err != nil || hits != 20 {
			t.Errorf("%s: %d accesses: %v", backend, hits, err)
		}
	}
}
