package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// interruption is the state that a handler finds at its first instruction.
type interruption struct {
	place string
	// registers are those at the interrupted instruction, in the order of struct dg_signal_state;
	// pc is one of them.
	registers [18]uint64
	values    map[string]uint64
}

const (
	interruptedPC    = 16
	interruptedFlags = 17
	// In a handler's frame: struct sigcontext, after the return address and the start of struct
	// ucontext.
	frameContext = 8 + 40
)

// TestSignalMoment replays programs that fail because a handler ran between two certain
// instructions, and examines each replay when that handler starts.
func TestSignalMoment(t *testing.T) {
	for _, x := range []struct {
		name   string
		signal unix.Signal
		values []string
		failed func(map[string]uint64) bool // at the end
	}{
		{"lost_update", unix.SIGALRM, []string{"counter", "own", "handled"},
			func(v map[string]uint64) bool { return v["counter"] < v["own"]+v["handled"] }},
		{"shared_flag", unix.SIGIO, []string{"item", "pending", "failed", "work"},
			func(v map[string]uint64) bool { return v["failed"] == 1 }},
		{"width_changes", unix.SIGALRM, []string{"width", "line"},
			func(v map[string]uint64) bool { return v["width"] == 132 || v["width"] == 80 }},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record/signals", x.name+".c"))
			if err != nil {
				t.Fatal(err)
			}
			rec := open(t, p.Record(t).Dir)
			e := lastInterruption(t, rec, x.signal)
			at := evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal, PC: evidence.Addr(e.Args[6]), Count: 1}
			var first interruption
			var firstEnd map[string]uint64
			for i := range replays(t) {
				got, end := replayTo(t, rec, at, x.values)
				if i == 0 {
					first, firstEnd = got, end
					t.Logf("event %d, %s, %v; at the end %v", e.Ordinal, got.place, got.values, end)
				}
				logged := loggedState(t, e)
				got.registers[interruptedFlags] &= logged.Flags
				if got.registers != logged.Registers {
					t.Fatalf("replay %d: the handler interrupted registers %#x, recorded %#x", i+1, got.registers, logged.Registers)
				}
				if got.registers[interruptedPC] != e.Args[1] {
					t.Fatalf("replay %d: the handler interrupted %#x, recorded %#x", i+1, got.registers[interruptedPC], e.Args[1])
				}
				if got.place != first.place || !maps.Equal(got.values, first.values) || !maps.Equal(end, firstEnd) {
					t.Fatalf("replay %d: %v at %s, %v at the end; the first had %v at %s, %v", i+1, got.values, got.place, end, first.values, first.place, firstEnd)
				}
				if !x.failed(end) {
					t.Fatalf("replay %d: what the program failed for is not there: %v", i+1, end)
				}
			}
		})
	}
}

// lastInterruption returns the last signal of a number that arrived between two events.
func lastInterruption(t *testing.T, rec *record.Recording, signal unix.Signal) *eventlog.Event {
	t.Helper()
	var last *eventlog.Event
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSignal && e.Object == uint64(signal) && eventlog.SignalPlace(e.Args[0]) == eventlog.PlaceAsync {
			c := *e // the iterator uses the slices again
			c.Args, c.Payloads = slices.Clone(e.Args), slices.Clone(e.Payloads)
			for i := range c.Payloads {
				c.Payloads[i].Data = bytes.Clone(c.Payloads[i].Data)
			}
			last = &c
		}
	}
	if last == nil {
		t.Fatalf("no %s came between two events", unix.SignalName(signal))
	}
	return last
}

func loggedState(t *testing.T, e *eventlog.Event) (state agent.RawSignalState) {
	t.Helper()
	if len(e.Payloads) < 2 {
		t.Fatal("the signal has no registers in the log")
	}
	if _, err := binary.Decode(e.Payloads[1].Data, binary.LittleEndian, &state); err != nil {
		t.Fatal(err)
	}
	return state
}

// replayTo replays to the recorded end, and examines the process at a handler's first instruction
// and at the end.
func replayTo(t *testing.T, rec *record.Recording, at evidence.Moment, names []string) (found interruption, end map[string]uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	look := func(s *replay.Stopped) (err error) {
		found, err = interrupted(s, names)
		return err
	}
	r, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{{At: at, Do: look}}, AtEnd: func(s *replay.Stopped) (err error) {
		end, err = variables(s, names)
		return err
	}}, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := recordtest.Differences(r); text != "" {
		t.Fatal(text)
	}
	if len(found.values) != len(names) || len(end) != len(names) {
		t.Fatal("the replay was not stopped at the handler and at the end")
	}
	return found, end
}

func interrupted(s *replay.Stopped, names []string) (i interruption, err error) {
	p, err := s.Process()
	if err != nil {
		return i, err
	}
	sp, ok := p.Threads[0].Registers.Get(image.RSP)
	if !ok {
		return i, errors.New("no stack pointer")
	}
	frame := evidence.Addr(sp)
	var context [len(i.registers) * 8]byte
	if _, err := s.ReadMemory(frame+frameContext, context[:]); err != nil {
		return i, err
	}
	if _, err := binary.Decode(context[:], binary.LittleEndian, &i.registers); err != nil {
		return i, err
	}
	i.place = p.Place(evidence.Addr(i.registers[interruptedPC])).Text
	i.values, err = variables(s, names)
	return i, err
}

// variables reads variables of the program.
func variables(s *replay.Stopped, names []string) (map[string]uint64, error) {
	p, err := s.Process()
	if err != nil {
		return nil, err
	}
	values := map[string]uint64{}
	for _, name := range names {
		symbol, ok := p.SymbolNamed(name)
		if !ok {
			return nil, fmt.Errorf("no variable %s", name)
		}
		var b [8]byte
		if _, err := s.ReadMemory(symbol.Addr, b[:min(symbol.Size, 8)]); err != nil {
			return nil, err
		}
		values[name] = binary.LittleEndian.Uint64(b[:])
	}
	return values, nil
}
