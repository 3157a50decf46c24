package debug_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
)

// gambler gives a session random commands.
type gambler struct {
	t          *testing.T
	s          *debug.Session
	random     *rand.Rand
	total, add evidence.Addr
	moments    []evidence.Moment
}

// command gives one. That the session is at the recording's beginning or end is no error.
func (g *gambler) command() (what string, err error) {
	halts := debug.Halts{}
	if g.random.IntN(2) == 0 {
		halts.Breakpoints = []evidence.Addr{g.add}
	}
	if g.random.IntN(4) == 0 && replay.WatchesWork() == nil {
		halts.Watches = []replay.Watch{{Addr: g.total, Size: 4, Writes: true}}
	}
	thread := g.s.Stop().Thread
	switch g.random.IntN(8) {
	case 0:
		what = "continue"
		_, err = g.s.Forward(halts, 0)
	case 1:
		what = "step"
		_, err = g.s.Forward(halts, thread)
	case 2:
		what = "reverse-continue"
		_, err = g.s.Backward(halts)
	case 3:
		what = "reverse-step"
		_, err = g.s.BackStep(thread)
	case 4:
		what = "goto"
		err = g.s.Go(debug.PositionOf(g.moments[g.random.IntN(len(g.moments))]))
	case 5:
		what = "goto end"
		err = g.s.Go(debug.Position{End: true})
	case 6:
		what = "change"
		err = g.change(thread)
	case 7:
		what = "leave"
		err = g.leave(halts)
	}
	if errors.Is(err, debug.ErrBegin) || errors.Is(err, debug.ErrEnd) {
		return what, nil
	}
	return what, err
}

// change stores to the program and calls a function.
func (g *gambler) change(thread uint32) error {
	return g.s.Changes().Do(thread, func(x *replay.Copy) error {
		n := g.random.Uint64N(1000)
		if err := x.WriteMemory(g.total, []byte{byte(n), byte(n >> 8), 0, 0}); err != nil {
			return err
		}
		r, err := x.Call(g.t.Context(), replay.Call{Function: g.add, Integers: []uint64{n, 5}})
		if err == nil && r.RAX != n+5 {
			g.t.Errorf("add(%d, 5) is %d", n, r.RAX)
		}
		return err
	})
}

// leave lets the process leave the recording, with a change, and continue in any way; then it is given up.
func (g *gambler) leave(halts debug.Halts) error {
	if g.random.IntN(2) == 0 {
		if err := g.change(g.s.Stop().Thread); err != nil {
			return err
		}
	}
	if err := g.s.Changes().Leave(); err != nil {
		return err
	}
	for range g.random.IntN(10) {
		plan := debug.LeftPlan{Halts: halts, Within: func(debug.Stop) bool { return g.random.IntN(3) > 0 }, Time: time.Minute}
		if g.random.IntN(2) == 0 {
			plan.Step = 1 + g.random.Uint32N(3)
		}
		var over *replay.CallError
		if err := g.s.Left().Continue(plan); err != nil && !errors.As(err, &over) {
			return err
		}
	}
	return g.s.Changes().Discard()
}

// end returns what the program has at the recording's end.
func (g *gambler) end() string {
	g.t.Helper()
	if err := g.s.Go(debug.Position{End: true}); err != nil {
		g.t.Fatal(err)
	}
	var all []byte
	err := g.s.Do(func(d *replay.DebugStop) error {
		general, extended, err := d.ThreadRegisters(1)
		if err != nil {
			return err
		}
		page := make([]byte, 4096)
		if _, err := d.ReadMemory(g.total&^4095, page); err != nil {
			return err
		}
		all = append(append(general, extended...), page...)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return string(all)
}

// TestRandomCommands: after random commands in both directions, with stores and calls among them, the end is as recorded: in the session, and
// in a replay, each byte of memory included. With DIAGNOSE_SOAK they are 1,000 for each level of optimisation.
func TestRandomCommands(t *testing.T) {
	commands := 50
	if os.Getenv("DIAGNOSE_SOAK") != "" {
		commands = 1000
	}
	for seed, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			rec := recorded(t, "total.c", level)
			s := openWith(t, rec, replay.Common{})
			g := &gambler{t: t, s: s, random: rand.New(rand.NewPCG(uint64(seed), 22))}
			if err := s.Do(func(d *replay.DebugStop) error {
				p, err := d.Process()
				if err == nil {
					g.total, g.add = symbol(t, p, "total"), symbol(t, p, "add")
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for e, err := range rec.Log.Ordered() {
				if err != nil {
					t.Fatal(err)
				}
				if e.Thread == 1 && e.Ordinal > 1 {
					g.moments = append(g.moments, evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal})
				}
			}
			first := g.end()
			refused := 0
			for n := range commands {
				if what, err := g.command(); err != nil {
					t.Logf("command %d, %s, at %+v: %v", n, what, s.Position(), err)
					refused++
				}
			}
			if refused > commands/50 {
				t.Errorf("%d of %d commands failed", refused, commands)
			}
			if g.end() != first {
				t.Error("the end of the session differs")
			}
			result, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true})
			if err != nil || !result.Comparison.Identical() {
				t.Errorf("%v, %s", err, recordtest.Differences(result))
			}
		})
	}
}
