package debug_test

import (
	"errors"
	"testing"
	"time"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

// leaveRepaired goes to where the program is about to fail, prevents that, and leaves.
func leaveRepaired(t *testing.T, s *debug.Session, core *image.Process) {
	t.Helper()
	if _, err := s.Backward(debug.Halts{Breakpoints: []evidence.Addr{symbol(t, core, "check")}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Changes().WriteMemory(symbol(t, core, "broken"), []byte{0}), s.Changes().Leave()); err != nil {
		t.Fatal(err)
	}
}

// Threads that had not begun where the process left begin, and end.
func TestLeaveUnbegun(t *testing.T) {
	s, core := open(t, "unbegun.c", "-O1")
	leaveRepaired(t, s, core)
	var over *replay.CallError
	if err := s.Left().Continue(debug.LeftPlan{Time: time.Minute}); !errors.As(err, &over) || over.End != replay.CallExit || over.Status != 8 {
		t.Errorf("the end: %v", err)
	}
}

// A process leaves the recording, takes another way and ends; the session is where it was, and its end is the recorded one, each byte included.
func TestLeave(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			s, core := open(t, "left.c", level)
			check, handle := symbol(t, core, "check"), symbol(t, core, "handle")
			leaveRepaired(t, s, core)
			at := s.Position()
			if err := s.Changes().Leave(); !errors.Is(err, debug.ErrLeft) {
				t.Errorf("a process that has left leaves: %v", err)
			}
			plan := debug.LeftPlan{Halts: debug.Halts{Breakpoints: []evidence.Addr{handle}}, Time: time.Minute}
			threads, stops := map[uint32]bool{}, 0
			for ; stops < 7; stops++ {
				if err := s.Left().Continue(plan); err != nil || s.Stop().Kind != replay.StopBreakpoint || s.Stop().PC != uint64(handle) {
					t.Fatalf("stop %d: %+v, %v", stops, s.Stop(), err)
				}
				threads[s.Stop().Thread] = true
			}
			if len(threads) != 3 {
				t.Errorf("the threads that stopped: %v", threads)
			}
			for _, move := range []func() error{
				func() error { _, err := s.Forward(debug.Halts{}, 0); return err },
				func() error { _, err := s.Backward(debug.Halts{}); return err },
				func() error { _, err := s.BackStep(1); return err },
				func() error { _, err := s.LastWrite(nil); return err },
			} {
				if err := move(); !errors.Is(err, debug.ErrLeft) {
					t.Errorf("a move of the recording: %v", err)
				}
			}
			var over *replay.CallError
			if err := s.Left().Continue(plan); !errors.As(err, &over) || over.End != replay.CallExit || over.Status != 3 {
				t.Errorf("the end: %v", err)
			}
			if err := s.Changes().Discard(); err != nil || s.Left() != nil || s.Stop().Thread != 1 || s.Stop().PC != uint64(check) || s.Position().Event != at.Event {
				t.Errorf("after that the session is at %+v, %+v, %v", s.Position(), s.Stop(), err)
			}
			if stop, err := s.Forward(debug.Halts{}, 0); err != nil || stop.Kind != replay.StopEnd || stop.Signal == 0 {
				t.Errorf("the recorded end: %+v, %v", stop, err)
			}
			if err := s.Do(func(d *replay.DebugStop) error {
				c, err := d.Compare()
				if err != nil {
					return err
				}
				// How far the thread came that counts without an event is not in the recording.
				turns, counts := symbol(t, core, "turns"), uint64(0)
				for _, x := range c.Differences {
					if x.Addr >= turns && x.Addr < turns+4 {
						counts = 1
					}
				}
				if c.Ranges != counts || c.Registers+c.Mappings > 0 {
					t.Errorf("the end differs: %+v", c)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
