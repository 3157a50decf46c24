package replay_test

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// mostCounted bounds the arrivals in a loop that waits.
const mostCounted = 500

// counting returns a break that counts its arrivals by thread.
func counting(pc evidence.Addr, n map[uint32]int) replay.Break {
	return replay.Break{PC: pc, Do: func(s *replay.Stopped) error {
		if s.Moment.PC != pc {
			return fmt.Errorf("stopped at %v, not at %v", s.Moment.PC, pc)
		}
		if n[s.Moment.Thread]++; n[s.Moment.Thread] == mostCounted {
			return replay.ErrBreakOver
		}
		return nil
	}}
}

// TestBreaksAsRecorded: breaks that change nothing do not change a replay, and count each thread's
// arrivals: at a function, at the instruction that faults, where a signal arrived.
func TestBreaksAsRecorded(t *testing.T) {
	for _, x := range []struct {
		program, function string
	}{{"overflow", "fill"}, {"lost_update", "slow"}, {"handler_between", "changed"}} {
		t.Run(x.program, func(t *testing.T) {
			rec := experiment(t, x.program)
			plain, err := replay.Run(t.Context(), rec, replay.FreeRequest{})
			if err != nil {
				t.Fatal(err)
			}
			entered, others := map[uint32]int{}, map[uint32]int{}
			list := []replay.Break{counting(addressOf(t, rec, x.function), entered)}
			faults := plain.Signal == int(unix.SIGSEGV)
			if faults {
				list = append(list, counting(plain.Moment.PC, others))
			}
			places := placesOf(t, rec)
			for _, pc := range places {
				list = append(list, counting(pc, others))
			}
			for range 5 {
				clear(entered)
				clear(others)
				r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Breaks: list})
				if err != nil {
					t.Fatal(err)
				}
				if r.Left != nil || r.End != plain.End || r.Signal != plain.Signal || r.Status != plain.Status || r.Moment != plain.Moment || r.Events != plain.Events {
					t.Errorf("ended with %s %d %d at %v, left %v; without breaks %s %d %d at %v", r.End, r.Signal, r.Status, r.Moment, r.Left,
						plain.End, plain.Signal, plain.Status, plain.Moment)
				}
				if len(entered) != 1 {
					t.Errorf("%v came to %s, want one thread", entered, x.function)
				}
				if len(r.Unbroken) > len(places) || x.program == "overflow" && len(r.Unbroken) > 0 {
					t.Errorf("taken back: %v", r.Unbroken)
				}
				if faults && others[plain.Moment.Thread] == 0 {
					t.Error("no thread reached the place of the fault")
				}
			}
		})
	}
}

// placesOf returns the pcs of the program at which a signal arrived.
func placesOf(t *testing.T, rec *record.Recording) (list []evidence.Addr) {
	t.Helper()
	atEnd(t, rec, func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		for e, err := range rec.Log.Ordered() {
			if err != nil {
				return err
			}
			if e.Kind != eventlog.KindSignal || len(e.Args) < 2 {
				continue
			}
			if m := p.ModuleAt(evidence.Addr(e.Args[1])); m != nil && m == p.Exe {
				list = append(list, evidence.Addr(e.Args[1]))
			}
		}
		return nil
	})
	return list
}

// TestBreakOver: a break that is removed is not called again, while another one at the same pc is.
func TestBreakOver(t *testing.T) {
	rec := experiment(t, "overflow")
	stores := storesOf(t, rec)
	once, each := 0, map[uint32]int{}
	pc := stores[0].PC
	over := replay.Break{PC: pc, Do: func(*replay.Stopped) error {
		once++
		return replay.ErrBreakOver
	}}
	if _, err := replay.Run(t.Context(), rec, replay.FreeRequest{Breaks: []replay.Break{over, counting(pc, each)}}); err != nil {
		t.Fatal(err)
	}
	if once != 1 || each[1] != 40 {
		t.Errorf("called %d times and %v, want once and 40 times", once, each)
	}
}

// storesOf returns the stores of an A to the words after the buffer of the program overflow.
func storesOf(t *testing.T, rec *record.Recording) []replay.Hit {
	t.Helper()
	buffer := wordAt(t, rec, addressOf(t, rec, "buffer"))
	var watches []replay.Watch
	for at := evidence.Addr(16); at < 40; at += 8 {
		watches = append(watches, replay.Watch{Addr: buffer + at, Size: 8, Writes: true})
	}
	hits := slices.DeleteFunc(hitsOf(t, rec, watches), func(h replay.Hit) bool { return h.By != evidence.ByProgram || !fills(&h) })
	if len(hits) == 0 {
		t.Fatal("no store past the buffer")
	}
	return hits
}

// TestBreaksThatChange: stores are skipped by their target. No Moment of a run that has left its
// log could name them.
func TestBreaksThatChange(t *testing.T) {
	rec := experiment(t, "overflow")
	pc := storesOf(t, rec)[0].PC
	buffer := wordAt(t, rec, addressOf(t, rec, "buffer"))
	for range times {
		skipped, values := 0, 0
		outside := replay.Break{PC: pc, Changes: true, Do: func(s *replay.Stopped) error {
			addr, size, err := s.Stores()
			if err != nil {
				return err
			}
			if addr < buffer+16 {
				at, value, n, err := s.Stored()
				if err == nil && (at != addr || uint64(n) != size || value != 'A') {
					err = fmt.Errorf("stored %#x, %d bytes at %v; said to store %d at %v", value, n, at, size, addr)
				}
				values++
				return err
			}
			skipped++
			return s.SkipStore()
		}}
		r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Breaks: []replay.Break{outside}})
		if got := endText(r, err); got != passes || skipped != 24 || values != 16 {
			t.Fatalf("ends with %s, %d stores skipped and %d made, want %s, 24 and 16", got, skipped, values, passes)
		}
	}
}

// TestBreakAtCalls: each call of a function is skipped.
func TestBreakAtCalls(t *testing.T) {
	rec := experiment(t, "use_after_free")
	free := addressOf(t, rec, "free")
	drop := addressOf(t, rec, "drop")
	calls := 0
	within := false
	r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Breaks: []replay.Break{
		{PC: drop, Do: func(*replay.Stopped) error { within = true; return nil }},
		{PC: free, Changes: true, Do: func(s *replay.Stopped) error {
			if !within {
				return nil
			}
			calls++
			return s.KeepFreed(0)
		}},
	}})
	if got := endText(r, err); got != passes || calls == 0 {
		t.Errorf("ends with %s after %d calls, want %s", got, calls, passes)
	}
}

// TestBreakAddsBreak: a break that adds others, at the same place and where its function returns, is called once a call.
func TestBreakAddsBreak(t *testing.T) {
	rec := experiment(t, "use_after_free")
	drop := addressOf(t, rec, "drop")
	entered, again, returned := 0, 0, 0
	_, err := replay.Run(t.Context(), rec, replay.FreeRequest{Breaks: []replay.Break{{PC: drop, Do: func(s *replay.Stopped) error {
		regs, err := s.Registers()
		if err != nil {
			return err
		}
		back, err := image.Uint64(s, regs.SP())
		if entered++; err != nil || entered > 1 {
			return err
		}
		if err := s.AddBreak(replay.Break{PC: drop, Do: func(*replay.Stopped) error { again++; return nil }}); err != nil {
			return err
		}
		return s.AddBreak(replay.Break{PC: evidence.Addr(back), Do: func(*replay.Stopped) error { returned++; return replay.ErrBreakOver }})
	}}}})
	if err != nil || entered == 0 || again != entered-1 || returned != 1 {
		t.Errorf("entered %d times, seen again %d times, returned %d times: %v", entered, again, returned, err)
	}
}

// TestStoresOfOneMoment: all values of one Moment are stored, although a thread reaches it only
// once.
func TestStoresOfOneMoment(t *testing.T) {
	rec := experiment(t, "overflow")
	name := addressOf(t, rec, "node")
	buffer := wordAt(t, rec, addressOf(t, rec, "buffer"))
	at := behindCall(t, rec, "length", unix.SYS_GETPPID)
	var seen [2]evidence.Addr
	opts := replay.FreeRequest{Common: replay.Common{AtEnd: func(s *replay.Stopped) error {
		for i := range seen {
			v, err := image.Uint64(s, buffer+evidence.Addr(8*i))
			if err != nil {
				return err
			}
			seen[i] = evidence.Addr(v)
		}
		return nil
	}}}
	for i := range evidence.Addr(2) {
		opts.Edits = append(opts.Edits, replay.Edit{Kind: replay.EditStore, At: at, Addr: buffer + 8*i, Value: uint64(name + i), Size: 8})
	}
	if _, err := replay.Run(t.Context(), rec, opts); err != nil {
		t.Fatal(err)
	}
	if want := [2]evidence.Addr{name, name + 1}; seen != want {
		t.Errorf("stored %v, want %v", seen, want)
	}
}

// TestBreakAtMoment: a Moment and a break at one instruction see the same arrivals.
func TestBreakAtMoment(t *testing.T) {
	rec := experiment(t, "overflow")
	pc, each := storesOf(t, rec)[0].PC, map[uint32]int{}
	const arrival = 5
	at := behindCall(t, rec, "malloc", unix.SYS_GETPPID)
	at.PC, at.Count = pc, arrival
	before := -1
	hook := replay.Hook{At: at, Do: func(*replay.Stopped) error { before = each[1]; return nil }}
	r, err := replay.Run(t.Context(), rec, replay.FreeRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}, Breaks: []replay.Break{counting(pc, each)}})
	if err != nil || r.Left != nil {
		t.Fatal(err, r)
	}
	if before != arrival-1 || each[1] != 40 {
		t.Errorf("the Moment came after %d of %d arrivals, want %d of 40", before, each[1], arrival-1)
	}
}
