package replay

import (
	"strings"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

func TestDivergenceText(t *testing.T) {
	write := &eventlog.Event{Kind: eventlog.KindSyscall, Object: 1, Args: []uint64{1, 0x7fffffffe000, 12}}
	futex := &eventlog.Event{Kind: eventlog.KindSyscall, Object: 202, Args: []uint64{0x555555558040, 128}}
	lock := &eventlog.Event{Kind: eventlog.KindMutex, Object: 0x404080, Args: []uint64{uint64(eventlog.SyncLock)}}
	at := evidence.Moment{Thread: 3, Ordinal: 1204}
	for _, c := range []struct {
		e    DivergenceError
		want string
	}{
		{DivergenceError{Reason: DiffersObject, Expected: write, Got: futex, ExpectedAt: "main (main.c:40)", GotAt: "take (lock.c:7)"},
			"thread 3, event 1204: the recording has write(1, 0x7fffffffe000, 12) called at main (main.c:40), " +
				"the replay reached futex(0x555555558040, 128) called at take (lock.c:7)"},
		{DivergenceError{Reason: DiffersArgument, Expected: write, Got: write, Place: 2, Want: 12, Have: 13},
			"thread 3, event 1204: the recording has write(1, 0x7fffffffe000, 12), in the replay argument 3 is 0xd, not 0xc"},
		{DivergenceError{Reason: DiffersKind, Got: lock, outcome: "ends with SIGSEGV"},
			"thread 3, event 1204: the recording ends with SIGSEGV, the replay reached mutex lock of 0x404080"},
		{DivergenceError{Reason: DiffersSkipped, Expected: lock, Want: 3, Have: 2},
			"thread 3, event 1204: the recording has mutex lock of 0x404080, the replay took 2 uncontended mutexes before it, not 3"},
		{DivergenceError{Reason: DiffersFault, Expected: write, Signal: 11, GotAt: "f (a.c:1)"},
			"thread 3, event 1204: the recording has write(1, 0x7fffffffe000, 12), the replay reached SIGSEGV at f (a.c:1)"},
		{DivergenceError{Reason: DiffersMapping, Expected: write, Want: 0x7000, Have: ^uint64(16)},
			"thread 3, event 1204: the recording has write(1, 0x7fffffffe000, 12), in the replay the memory at 0x7000 cannot be mapped (file exists)"},
	} {
		c.e.Moment = at
		if got := c.e.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestStuckText(t *testing.T) {
	e := StuckError{After: 10 * time.Second, Events: 17, Total: 40, Holder: 2, Due: 1, Threads: []WaitingThread{
		{Thread: 1, Ordinal: 9, Waits: "mutex", Object: 0x404080, ObjectName: "the global lock", At: "main (main.c:3)", Next: "join of 0x2"},
		{Thread: 2, Ordinal: 8, At: "spin (main.c:9)"},
	}}
	got := e.Error()
	for _, want := range []string{
		"no event for 10s while all threads sleep (17 of 40 events)", "thread 2 has the right to run, the next event is thread 1's",
		"thread 1, event 9: waits for mutex 0x404080 (the global lock) at main (main.c:3); its next event in the recording is join of 0x2",
		"thread 2, event 8: runs at spin (main.c:9)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestHookOrder(t *testing.T) {
	s := eventlog.Schedule{{Thread: 1, Events: 3}, {Thread: 2, Events: 2}, {Thread: 1, Events: 1}}
	hook := func(thread uint32, ordinal uint64) Hook {
		return Hook{At: evidence.Moment{Thread: thread, Ordinal: ordinal}}
	}
	sorted, err := orderHooks(s, []Hook{hook(1, 4), hook(2, 1), hook(1, 2), hook(2, 2)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Hook{hook(1, 2), hook(2, 1), hook(2, 2), hook(1, 4)}
	for i := range want {
		if sorted[i].At != want[i].At {
			t.Errorf("hook %d is at %v, want %v", i, sorted[i].At, want[i].At)
		}
	}
	if _, err := orderHooks(s, []Hook{hook(2, 3)}); err == nil || !strings.Contains(err.Error(), "thread 2 has 2 events") {
		t.Errorf("a moment that is not in the recording: %v", err)
	}
}
