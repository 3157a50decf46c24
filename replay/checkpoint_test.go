package replay_test

import (
	"errors"
	"path/filepath"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// someMoments returns events of all threads, spread over the recording. None is a signal's: its place may be in a loop, where a hook
// for every arrival takes minutes.
func someMoments(t *testing.T, rec *record.Recording, most int) []evidence.Moment {
	t.Helper()
	var all []evidence.Moment
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSignal || e.Kind == eventlog.KindSignalEnd {
			continue
		}
		all = append(all, evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal})
	}
	var some []evidence.Moment
	for i := range most {
		if m := all[len(all)*(2*i+1)/(2*most)]; len(some) == 0 || m != some[len(some)-1] {
			some = append(some, m)
		}
	}
	return some
}

// checkpointsAt replays up to the end, and leaves checkpoints.
func checkpointsAt(t *testing.T, rec *record.Recording, from *replay.Checkpoint, moments ...evidence.Moment) []*replay.Checkpoint {
	t.Helper()
	var list []*replay.Checkpoint
	var hooks []replay.Hook
	for _, m := range moments {
		done := false
		// Every: some of the threads end, or reach their next event, before they are in the program again.
		hooks = append(hooks, replay.Hook{At: m, Every: true, Do: func(s *replay.Stopped) error {
			if done {
				return nil
			}
			x, err := s.Checkpoint()
			if impossible := new(replay.NoCheckpointError); errors.As(err, &impossible) {
				return nil // another thread has stopped, too: the next time it may be possible
			}
			if err != nil {
				return err
			}
			done = true
			t.Cleanup(x.Close)
			list = append(list, x)
			return nil
		}})
	}
	result, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: hooks}, Verify: true, From: from})
	identical(t, "the replay that left checkpoints", result, err)
	return list
}

func identical(t *testing.T, what string, result *replay.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if result.Comparison == nil || !result.Comparison.Identical() {
		t.Fatalf("%s: %s", what, recordtest.Differences(result))
	}
}

func continues(t *testing.T, rec *record.Recording, x *replay.Checkpoint) {
	t.Helper()
	result, err := replay.Run(t.Context(), rec, replay.PlainRequest{Verify: true, From: x})
	identical(t, "from "+x.Moment.String(), result, err)
}

// TestCheckpoints continues replays from checkpoints: twice from each, and from checkpoints that such a replay leaves. All end as
// recorded, each byte of memory included. The programs' threads wait in many kinds of calls, run in signal handlers, have places of
// signals that are looked for, and end, the first one before the others, too.
func TestCheckpoints(t *testing.T) {
	for _, name := range []string{"basic/wait", "basic/compute", "faults/in_handler", "faults/many", "sync/mutex", "sync/cond", "sync/sem",
		"sync/deadlock", "syscalls/pipes", "syscalls/server", "syscalls/futexes", "threads/join", "threads/main_leaves",
		"threads/fails_unbegun", "threads/timer_thread", "signals/altstack", "signals/frame", "signals/strings", "signals/threads"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			rec := open(t, p.Record(t).Dir)
			moments := someMoments(t, rec, 4)
			list := checkpointsAt(t, rec, nil, moments...)
			// Which thread runs after an event differs from replay to replay. After a call, the next event may be a signal that had
			// waited for its return, so that no thread is in the program between them: other events are tried as well.
			for more := 8; more <= 256 && len(list) == 0; more *= 2 {
				list = checkpointsAt(t, rec, nil, someMoments(t, rec, more)...)
			}
			if len(list) == 0 {
				t.Fatal("no thread was in the program after any of the events")
			}
			for _, x := range list[:min(4, len(list))] {
				continues(t, rec, x)
				continues(t, rec, x)
			}
			later := checkpointsAt(t, rec, list[0], moments[len(moments)-1])
			for _, x := range later {
				continues(t, rec, x)
			}
		})
	}
}

// A process with memory that a fork would share, or would not have, cannot be copied. Its replay continues.
func TestNoCheckpoint(t *testing.T) {
	for _, name := range []string{"syscalls/shared", "checkpoint/wiped"} {
		t.Run(name, func(t *testing.T) {
			p, err := recordtest.Read(filepath.Join("../internal/testdata/record", name) + ".c")
			if err != nil {
				t.Fatal(err)
			}
			rec := open(t, p.Record(t).Dir)
			moments := someMoments(t, rec, 20)
			refused := false
			hook := replay.Hook{At: moments[len(moments)-2], Every: true, Do: func(s *replay.Stopped) error {
				x, err := s.Checkpoint()
				if err == nil {
					x.Close()
				}
				var impossible *replay.NoCheckpointError
				refused = errors.As(err, &impossible)
				return nil
			}}
			result, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}, Verify: true})
			identical(t, "the replay", result, err)
			if !refused {
				t.Errorf("there is a checkpoint at %v", hook.At)
			}
		})
	}
}
