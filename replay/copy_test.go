package replay_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

const calledSource = "../internal/testdata/record/checkpoint/called.c"

// called records it.
func called(t testing.TB) *record.Recording {
	t.Helper()
	p, err := recordtest.Read(calledSource)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := record.Open(p.Record(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// atPlace replays up to the function place of that program, calls do there, and compares the end with the recorded one.
func atPlace(t *testing.T, rec *record.Recording, do func(s *replay.Stopped) error) {
	t.Helper()
	reached := false
	result, err := replay.Run(t.Context(), rec, replay.ProbeRequest{Verify: true, Probing: replay.Probing{Copies: true, At: []evidence.Addr{addressOf(t, rec, "place")},
		OnArrival: func(a *replay.Arrival) error {
			reached = true
			return do(a.Stopped)
		}}})
	identical(t, "the replay that was copied", result, err)
	if !reached {
		t.Fatal("the replay did not reach the place")
	}
}

// inCopy is atPlace with a copy.
func inCopy(t *testing.T, rec *record.Recording, do func(x *replay.Copy) error) {
	t.Helper()
	atPlace(t, rec, func(s *replay.Stopped) error {
		x, err := s.Copy(1)
		if err != nil {
			return err
		}
		return errors.Join(do(x), x.Close())
	})
}

func call(t *testing.T, rec *record.Recording, x *replay.Copy, function string, integers ...uint64) (*replay.Returned, error) {
	t.Helper()
	return x.Call(t.Context(), replay.Call{Function: addressOf(t, rec, function), Integers: integers})
}

// TestCopyCalls: arguments, results, memory that lasts from call to call, and that of the replay, which does not change.
func TestCopyCalls(t *testing.T) {
	rec := called(t)
	total := addressOf(t, rec, "total")
	inCopy(t, rec, func(x *replay.Copy) error {
		before, err := x.Registers()
		if err != nil {
			return err
		}
		r, err := call(t, rec, x, "sum", 1, 2, 3, 4, 5, 6)
		if err != nil || r.RAX != 91 {
			t.Errorf("sum: %+v, %v", r, err)
		}
		if err := x.WriteMemory(total, []byte{40, 0, 0, 0}); err != nil {
			return err
		}
		r, err = x.Call(t.Context(), replay.Call{Function: addressOf(t, rec, "scale"), Vectors: []uint64{math.Float64bits(1.5), math.Float64bits(3)}})
		if err != nil {
			return err
		}
		if scaled := math.Float64frombits(binary.LittleEndian.Uint64(r.Vector[0][:])); scaled != 44.5 {
			t.Errorf("scale returned %v", scaled)
		}
		for want := uint64(41); want <= 43; want++ {
			if r, err := call(t, rec, x, "count"); err != nil || r.RAX != want {
				t.Errorf("count: %+v, %v, want %d", r, err, want)
			}
		}
		text := evidence.Addr(mustGet(before, image.RSP)) - 4096
		if err := x.WriteMemory(text, []byte("as long as the copy\x00")); err != nil {
			return err
		}
		r, err = call(t, rec, x, "copy_text", uint64(text))
		if err != nil {
			return err
		}
		kept := make([]byte, 19)
		if _, err := x.ReadMemory(evidence.Addr(r.RAX), kept); err != nil || string(kept) != "as long as the copy" {
			t.Errorf("the text is %q, %v", kept, err)
		}
		if after, err := x.Registers(); err != nil || after != before {
			t.Errorf("the registers were %v, and are %v (%v)", before, after, err)
		}
		return nil
	})
	atPlace(t, rec, func(s *replay.Stopped) error {
		var word [4]byte
		if _, err := s.ReadMemory(total, word[:]); err != nil || word[0] != 7 {
			t.Errorf("the total of the replay is %v, %v", word, err)
		}
		return nil
	})
}

func mustGet(r image.Registers, n image.Register) uint64 {
	v, _ := r.Get(n)
	return v
}

// TestCopyLocks: a function waits for a lock of another thread, which gives it back; where none can, that is said.
func TestCopyLocks(t *testing.T) {
	rec := called(t)
	inCopy(t, rec, func(x *replay.Copy) error {
		for want := uint64(8); want <= 9; want++ {
			if r, err := call(t, rec, x, "lock_lent"); err != nil || r.RAX != want {
				t.Errorf("lock_lent: %+v, %v, want %d", r, err, want)
			}
		}
		_, err := call(t, rec, x, "lock_kept")
		var e *replay.CallError
		if !errors.As(err, &e) || e.End != replay.CallStuck {
			t.Errorf("lock_kept: %v", err)
		}
		if _, err := call(t, rec, x, "count"); !errors.Is(err, replay.ErrCopyOver) {
			t.Errorf("after a call that did not return: %v", err)
		}
		return nil
	})
}

// TestCopyFails: functions that do not return. Each is called in a copy of its own.
func TestCopyFails(t *testing.T) {
	rec := called(t)
	for _, test := range []struct {
		function string
		end      replay.CallEnd
		signal   int
		status   int
		limit    replay.CallLimit
	}{
		{"fail", replay.CallSignal, 11, 0, replay.CallLimit{}},
		{"descend", replay.CallSignal, 11, 0, replay.CallLimit{}},
		{"abort", replay.CallSignal, 6, 0, replay.CallLimit{}},
		{"leave", replay.CallExit, 0, 3, replay.CallLimit{}},
		{"spin", replay.CallTime, 0, 0, replay.CallLimit{Time: 200 * time.Millisecond}},
		{"spin", replay.CallInstructions, 0, 0, replay.CallLimit{Instructions: 100}},
		{"past_the_library", replay.CallStuck, 0, 0, replay.CallLimit{}},
	} {
		inCopy(t, rec, func(x *replay.Copy) error {
			function := addressOf(t, rec, test.function)
			started := time.Now()
			_, err := x.Call(t.Context(), replay.Call{Function: function, Integers: []uint64{0}, Limit: test.limit})
			var e *replay.CallError
			if !errors.As(err, &e) || e.End != test.end || e.Signal != test.signal || e.Status != test.status || e.Thread != 1 {
				t.Errorf("%s: %v", test.function, err)
				return nil
			}
			if took := time.Since(started); test.limit.Time > 0 && took > 50*test.limit.Time {
				t.Errorf("%s took %v", test.function, took)
			}
			if test.function == "fail" && (e.PC < function || e.PC > function+64) {
				t.Errorf("fail failed at %v, and is at %v", e.PC, function)
			}
			return nil
		})
	}
}

// TestCopyConfined: a function of a copy has no effect outside of it.
func TestCopyConfined(t *testing.T) {
	rec := called(t)
	path := filepath.Join(t.TempDir(), "escaped")
	inCopy(t, rec, func(x *replay.Copy) error {
		regs, err := x.Registers()
		if err != nil {
			return err
		}
		at := evidence.Addr(mustGet(regs, image.RSP)) - 4096
		if err := x.WriteMemory(at, append([]byte(path), 0)); err != nil {
			return err
		}
		r, err := call(t, rec, x, "escape", uint64(at))
		if err != nil || r.RAX&7 != 0 {
			t.Errorf("escape: %+v, %v", r, err)
		}
		return nil
	})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a copy made a file: %v", err)
	}
}

// TestCopyAtEnd: where the program has failed, functions can be called, of all threads.
func TestCopyAtEnd(t *testing.T) {
	rec := called(t)
	debugging := replay.Debugging{OnStop: func(s *replay.DebugStop) (replay.DebugPlan, error) {
		x, err := s.Copy(1)
		if err != nil {
			return replay.DebugPlan{}, err
		}
		r, err := call(t, rec, x, "lock_lent")
		if err != nil || r.RAX != 2 {
			t.Errorf("lock_lent: %+v, %v", r, err)
		}
		return replay.DebugPlan{}, x.Close()
	}}
	if _, err := replay.Run(t.Context(), rec, replay.DebugRequest{Debugging: debugging}); err != nil {
		t.Fatal(err)
	}
}

// TestCopyRefused: a replay without copies says so.
func TestCopyRefused(t *testing.T) {
	rec := called(t)
	done := false
	_, err := replay.Run(t.Context(), rec, replay.ProbeRequest{Probing: replay.Probing{At: []evidence.Addr{addressOf(t, rec, "place")},
		OnArrival: func(a *replay.Arrival) error {
			_, err := a.Copy(1)
			var impossible *replay.NoCheckpointError
			done = errors.As(err, &impossible)
			return nil
		}}})
	if err != nil || !done {
		t.Errorf("a copy was made: %v", err)
	}
}

// TestCopyLarge: many copies of a process whose memory the kernel may join to huge pages.
func TestCopyLarge(t *testing.T) {
	rec := calledWith(t, "8")
	total := addressOf(t, rec, "total")
	atPlace(t, rec, func(s *replay.Stopped) error {
		for range 130 {
			x, err := s.Copy(1)
			if err != nil {
				return err
			}
			if r, err := call(t, rec, x, "count"); err != nil || r.RAX != 8 {
				t.Fatalf("count: %+v, %v", r, err)
			}
			if err := x.Close(); err != nil {
				return err
			}
			var word [4]byte
			if _, err := s.ReadMemory(total, word[:]); err != nil || word[0] != 7 {
				t.Fatalf("the total of the replay is %v, %v", word, err)
			}
		}
		return nil
	})
}

// calledWith records the program with as many megabytes.
func calledWith(t testing.TB, megabytes string) *record.Recording {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "called")
	if out, err := exec.Command("gcc", "-g", "-pthread", "-o", exe, calledSource).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, []string{megabytes}, "", "SIGSEGV").Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// BenchmarkCopyCalls measures calls in one copy, and copies that are made, called in once, and closed. The process has two other threads, and
// 0 or 32 MB that were written.
func BenchmarkCopyCalls(b *testing.B) {
	for _, megabytes := range []string{"0", "32"} {
		rec := calledWith(b, megabytes)
		at, count := addressOf(b, rec, "place"), addressOf(b, rec, "count")
		run := func(b *testing.B, do func(s *replay.Stopped) error) {
			_, err := replay.Run(b.Context(), rec, replay.ProbeRequest{Probing: replay.Probing{Copies: true, At: []evidence.Addr{at},
				OnArrival: func(a *replay.Arrival) error { return errors.Join(do(a.Stopped), replay.ErrEnough) }}})
			if err != nil {
				b.Fatal(err)
			}
		}
		calls := func(b *testing.B, s *replay.Stopped, n func() bool) error {
			x, err := s.Copy(1)
			for err == nil && n() {
				_, err = x.Call(b.Context(), replay.Call{Function: count})
			}
			return errors.Join(err, x.Close())
		}
		b.Run("one copy/"+megabytes+"MB", func(b *testing.B) {
			run(b, func(s *replay.Stopped) error { return calls(b, s, b.Loop) })
		})
		b.Run("fresh copies/"+megabytes+"MB", func(b *testing.B) {
			run(b, func(s *replay.Stopped) (err error) {
				for err == nil && b.Loop() {
					n := 0
					err = calls(b, s, func() bool { n++; return n == 1 })
				}
				return err
			})
		})
	}
}
