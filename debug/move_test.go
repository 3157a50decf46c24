package debug_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/debug"
	"diagnose/debug/debugtest"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// word reads an int of the stopped program.
func word(t *testing.T, s *debug.Session, at evidence.Addr) int32 {
	t.Helper()
	var b [4]byte
	if err := s.Do(func(d *replay.DebugStop) error {
		_, err := d.ReadMemory(at, b[:])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return int32(binary.LittleEndian.Uint32(b[:]))
}

// The calls of a function are found backwards and forwards, in the same order and with the same memory.
func TestBreakpoints(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			s, core := open(t, "total.c", level)
			total := symbol(t, core, "total")
			halts := debug.Halts{Breakpoints: []evidence.Addr{symbol(t, core, "add")}}
			type call struct {
				thread uint32
				total  int32
			}
			var calls []call
			for {
				stop, err := s.Backward(halts)
				if errors.Is(err, debug.ErrBegin) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, call{stop.Thread, word(t, s, total)})
			}
			if len(calls) != 11 {
				t.Fatalf("%d calls: %v", len(calls), calls)
			}
			for i := len(calls) - 1; i >= 0; i-- {
				stop, err := s.Forward(halts, 0)
				if err != nil || stop.Kind != replay.StopBreakpoint {
					t.Fatalf("%v %+v", err, stop)
				}
				if got := (call{stop.Thread, word(t, s, total)}); got != calls[i] {
					t.Errorf("call %d is %v, was %v backwards", i, got, calls[i])
				}
			}
			stop, err := s.Forward(halts, 0)
			if err != nil || stop.Kind != replay.StopEnd || stop.Signal != 11 {
				t.Errorf("at the end: %v %+v", err, stop)
			}
			if _, err := s.Forward(halts, 0); !errors.Is(err, debug.ErrEnd) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// Steps backwards arrive at the instructions of the steps forwards, in the reverse order.
func TestSteps(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			s, core := open(t, "total.c", level)
			halts := debug.Halts{Breakpoints: []evidence.Addr{symbol(t, core, "add")}}
			for range 7 {
				if _, err := s.Backward(halts); err != nil {
					t.Fatal(err)
				}
			}
			var forwards []uint64
			forwards = append(forwards, s.Stop().PC)
			thread := s.Stop().Thread
			for range 30 {
				stop, err := s.Forward(debug.Halts{}, thread)
				if err != nil {
					t.Fatal(err)
				}
				forwards = append(forwards, stop.PC)
			}
			m, err := s.Moment()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Go(debug.PositionOf(m)); err != nil {
				t.Fatal(err)
			}
			for i := len(forwards) - 2; i >= 0; i-- {
				stop, err := s.BackStep(thread)
				if err != nil || stop.PC != forwards[i] {
					t.Fatalf("step %d back: %v, at %#x, not at %#x", len(forwards)-1-i, err, stop.PC, forwards[i])
				}
			}
		})
	}
}

// The last store to a variable is found backwards: the process is before it.
func TestWatch(t *testing.T) {
	debugtest.NeedsWatches(t)
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			s, core := open(t, "total.c", level)
			total := symbol(t, core, "total")
			halts := debug.Halts{Watches: []replay.Watch{{Addr: total, Size: 4, Writes: true}}}
			var before []int32 // the total before each store, the last first
			for {
				stop, err := s.Backward(halts)
				if errors.Is(err, debug.ErrBegin) {
					break
				}
				if err != nil || stop.Kind != replay.StopWatch {
					t.Fatalf("%v %+v", err, stop)
				}
				before = append(before, word(t, s, total))
			}
			var after []int32
			for {
				stop, err := s.Forward(halts, 0)
				if err != nil {
					t.Fatal(err)
				}
				if stop.Kind != replay.StopWatch {
					break
				}
				after = append(after, word(t, s, total))
			}
			slices.Reverse(before)
			if len(after) < 7 || len(before) != len(after) || before[0] != 0 || after[len(after)-1] != 19 ||
				!slices.Equal(before[1:], after[:len(after)-1]) {
				t.Errorf("before the stores %v, after them %v", before, after)
			}
		})
	}
}

// In a loop of many iterations without an event, the instruction before is found by counting.
func TestLoop(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			s, _ := open(t, "hot.c", level)
			started := time.Now()
			var back []uint64
			for range 4 {
				stop, err := s.BackStep(1)
				if err != nil {
					t.Fatal(err)
				}
				back = append(back, stop.PC)
			}
			m, err := s.Moment()
			if err != nil || m.Count < 290_000 || uint64(m.PC) != back[3] {
				t.Errorf("at %v, %v", m, err)
			}
			if err := s.Go(debug.PositionOf(m)); err != nil || s.Stop().PC != back[3] {
				t.Fatal(err)
			}
			for i := 2; i >= 0; i-- {
				if stop, err := s.Forward(debug.Halts{}, 1); err != nil || stop.PC != back[i] {
					t.Errorf("forwards at %#x, not at %#x: %v", stop.PC, back[i], err)
				}
			}
			if stop, err := s.Forward(debug.Halts{}, 1); err != nil || stop.Kind != replay.StopStep {
				t.Errorf("%v %+v", err, stop)
			}
			if stop, err := s.Forward(debug.Halts{}, 1); err != nil || stop.Kind != replay.StopEnd {
				t.Errorf("%v %+v", err, stop)
			}
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("it took %v: the arrivals were not counted at full speed", took)
			}
		})
	}
}

// Whatever way leads to a moment, the registers are the same there.
func TestWander(t *testing.T) {
	for name, after := range map[string]time.Duration{"from the start": time.Hour, "from marks": 0} {
		t.Run(name, func(t *testing.T) { wander(t, after) })
	}
}

func wander(t *testing.T, after time.Duration) {
	debugtest.NeedsWatches(t)
	s, core := open(t, "total.c", "-O1")
	s.LeaveMarksAfter(after)
	halts := []debug.Halts{{}, {Breakpoints: []evidence.Addr{symbol(t, core, "add")}},
		{Watches: []replay.Watch{{Addr: symbol(t, core, "total"), Size: 4, Writes: true}}}}
	random := rand.New(rand.NewPCG(1, 2))
	known := map[evidence.Moment]string{}
	again := 0
	for range 80 {
		var err error
		h := halts[random.IntN(len(halts))]
		switch random.IntN(4) {
		case 0:
			_, err = s.Forward(halts[1+random.IntN(2)], 0)
		case 1:
			_, err = s.Forward(h, s.Stop().Thread)
		case 2:
			_, err = s.Backward(halts[1+random.IntN(2)])
		case 3:
			_, err = s.BackStep(s.Stop().Thread)
		}
		if err != nil && !errors.Is(err, debug.ErrEnd) && !errors.Is(err, debug.ErrBegin) {
			t.Fatal(err)
		}
		m, err := s.Moment()
		if err != nil {
			t.Fatal(err)
		}
		var registers []byte
		if err := s.Do(func(d *replay.DebugStop) error {
			registers, _, err = d.ThreadRegisters(s.Stop().Thread)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		const flagsAt, resume = 18*8 + 2, 1 // RF is the debugger's
		registers[flagsAt] &^= resume
		if before, found := known[m]; !found {
			known[m] = string(registers)
		} else if again++; before != string(registers) {
			t.Errorf("the registers at %v differ", m)
		}
	}
	if again == 0 {
		t.Error("no moment was reached twice")
	}
	if marks, used := s.Marks(); (used > 0) != (after == 0) || marks > 12 {
		t.Errorf("%d marks, of which %d replays began", marks, used)
	}
}

// All stores to a word are found where a preemption of the recording is counted at their instruction.
func TestWatchAtPreemption(t *testing.T) {
	debugtest.NeedsWatches(t)
	rec := recorded(t, "total.c", "-O0")
	core, err := image.OpenCore(filepath.Join(rec.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	words := []replay.Watch{{Addr: symbol(t, core, "total"), Size: 4, Writes: true}}
	last, err := openWith(t, rec, replay.Common{}).LastWrite(words)
	if err != nil || last.Before.Thread != 1 || last.Before.Count != 5 {
		t.Fatalf("%+v, %v", last, err)
	}
	m := last.Before
	s := openWith(t, rec, replay.Common{Preemptions: []eventlog.Preemption{{Thread: m.Thread, Ordinal: m.Ordinal, Class: eventlog.PointPC, PC: m.PC, Count: 3, Until: 1}}})
	for n := 0; ; n++ {
		_, err := s.Backward(debug.Halts{Watches: words})
		if errors.Is(err, debug.ErrBegin) {
			if n != 11 {
				t.Errorf("%d stores, and there are 11", n)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
