package replay_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// sight is what a replay shows at a moment, and how it ended.
type sight struct {
	At             evidence.Moment
	Registers      string
	Events, Turns  uint64
	End            replay.EndKind
	Ended          evidence.Moment
	Signal, Status int
}

// look replays up to the end, which is compared with the recorded one, and returns the first sight at the moment.
func look(t *testing.T, ctx context.Context, rec *record.Recording, at evidence.Moment) sight {
	t.Helper()
	var seen sight
	hook := replay.Hook{At: at, Every: true, Do: func(s *replay.Stopped) error {
		if seen.At.Thread != 0 {
			return nil
		}
		regs, err := s.Registers()
		seen.At, seen.Registers = s.Moment, fmt.Sprint(regs)
		return err
	}}
	result, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}, Verify: true})
	identical(t, "up to "+at.String(), result, err)
	seen.Events, seen.Turns, seen.End, seen.Ended, seen.Signal, seen.Status = result.Events, result.Turns, result.End, result.Moment, result.Signal, result.Status
	return seen
}

// instructions returns the instructions of a thread after an event.
func instructions(t *testing.T, ctx context.Context, rec *record.Recording, from evidence.Moment) (list []string) {
	t.Helper()
	result, err := replay.Run(ctx, rec, replay.StepRequest{Verify: true, Stepping: replay.Stepping{Ahead: true,
		Windows: map[uint32]replay.StepWindow{from.Thread: {From: from.Ordinal, To: from.Ordinal}},
		Each: func(x *replay.Executed) {
			list = append(list, fmt.Sprintf("%d %d %#x %x", x.Thread, x.Ordinal, x.PC, x.General))
		}}})
	identical(t, "stepped after "+from.String(), result, err)
	return list
}

// TestKept makes the same replays with and without checkpoints, of programs with one thread and several, signals and waits. They
// show the same: moments, registers, instructions, and the numbers of events and hand-overs at the end.
func TestKept(t *testing.T) {
	for _, name := range []string{"basic/wait", "basic/compute", "faults/in_handler", "sync/mutex", "threads/main_leaves",
		"threads/timer_thread", "signals/altstack", "signals/threads", "syscalls/server"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			showsTheSame(t, open(t, p.Record(t).Dir))
		})
	}
}

// TestKeptTurns is TestKept where threads take turns.
func TestKeptTurns(t *testing.T) {
	for _, name := range []string{"sync/mutex", "signals/threads"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			showsTheSame(t, open(t, p.RecordTurns(t, 1).Dir))
		})
	}
}

func showsTheSame(t *testing.T, rec *record.Recording) {
	t.Helper()
	moments := someMoments(t, rec, 5)
	ctx, kept := replay.KeepCheckpoints(t.Context(), replay.MostKept)
	defer kept.Close()
	result, err := replay.Run(ctx, rec, replay.PlainRequest{Verify: true})
	identical(t, "the replay that leaves checkpoints", result, err)
	if c := kept.Counts(); c.Whole != 1 || c.Continued != 0 || c.Checkpoints == 0 {
		t.Fatalf("the first replay: %+v", c)
	}
	for _, at := range slices.Backward(moments) {
		if at.Ordinal == 1 {
			continue // registers may still have the kernel's id of the thread
		}
		if got, want := look(t, ctx, rec, at), look(t, t.Context(), rec, at); got != want {
			t.Errorf("from a checkpoint %+v\nfrom the start %+v", got, want)
		}
	}
	from := moments[len(moments)-1]
	if got, want := instructions(t, ctx, rec, from), instructions(t, t.Context(), rec, from); !slices.Equal(got, want) {
		t.Errorf("from a checkpoint %d instructions after %v\n%q\nfrom the start %d\n%q", len(got), from, got, len(want), want)
	}
	if c := kept.Counts(); c.Continued == 0 {
		t.Errorf("no replay began at a checkpoint: %+v", c)
	}
}

// A replay is whole if the process of its checkpoint has ended.
func TestKeptLost(t *testing.T) {
	p, err := recordtest.Read("../internal/testdata/record/basic/wait.c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	ctx, kept := replay.KeepCheckpoints(t.Context(), replay.MostKept)
	defer kept.Close()
	moments := someMoments(t, rec, 20)
	at := moments[len(moments)-2]
	result, err := replay.Run(ctx, rec, replay.PlainRequest{Verify: true})
	identical(t, "the replay that leaves checkpoints", result, err)
	if err := kept.EndProcesses(); err != nil {
		t.Fatal(err)
	}
	if got, want := look(t, ctx, rec, at), look(t, t.Context(), rec, at); got != want {
		t.Errorf("after a lost checkpoint %+v\nfrom the start %+v", got, want)
	}
	if c := kept.Counts(); c.Whole != 2 || c.Continued != 1 {
		t.Errorf("%+v", c)
	}
}

// Without room for checkpoints, and after Close, every replay is whole. So is one for whose process no checkpoint is possible.
func TestKeptRefused(t *testing.T) {
	for name, most := range map[string]int{"basic/wait": 0, "syscalls/shared": replay.MostKept} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			rec := open(t, p.Record(t).Dir)
			ctx, kept := replay.KeepCheckpoints(t.Context(), most)
			defer kept.Close()
			last := someMoments(t, rec, 20)
			for range 2 {
				look(t, ctx, rec, last[len(last)-2])
			}
			if c := kept.Counts(); most == 0 && c.Checkpoints != 0 || most == 0 && c.Whole != 2 {
				t.Errorf("%+v", c)
			}
		})
	}
	p, err := recordtest.Read("../internal/testdata/record/basic/wait.c")
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, p.Record(t).Dir)
	ctx, kept := replay.KeepCheckpoints(t.Context(), replay.MostKept)
	for range 2 {
		result, err := replay.Run(ctx, rec, replay.PlainRequest{Verify: true})
		identical(t, "the replay", result, err)
		kept.Close()
	}
	if c := kept.Counts(); c.Whole != 2 {
		t.Errorf("after Close: %+v", c)
	}
}
