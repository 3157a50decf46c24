package replay

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

func TestWatchState(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var s watchState
	s.start(start)
	s.see(at(1), 5, 1)
	s.see(at(2), 5, 2) // computes
	s.see(at(3), 5, 2) // sleeps
	if s.event != at(1) || s.moved != at(2) {
		t.Errorf("the last event was seen at %v and the last sign of life at %v, want 1s and 2s", s.event.Sub(start), s.moved.Sub(start))
	}
	s.see(at(4), 6, 2)
	if s.event != at(4) || s.moved != at(4) {
		t.Errorf("an event without processor time was not seen: %v, %v", s.event.Sub(start), s.moved.Sub(start))
	}
	s.see(at(5), 6, 2)
	s.hit(at(5), 1)
	if s.event != at(5) {
		t.Error("an access to a watched word was not seen")
	}
}

// TestWatchStateLate: time in which the watchdog could not look does not count as time without
// progress.
func TestWatchStateLate(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var s watchState
	s.start(start)
	s.noteLook(at(watchInterval))
	s.noteLook(at(watchInterval + time.Minute))
	if want := at(time.Minute - watchInterval); s.event != want || s.moved != want {
		t.Errorf("the last event is taken to be of %v and the last sign of life of %v, want %v", s.event.Sub(start), s.moved.Sub(start), want.Sub(start))
	}
}

// TestWatchStateComputes: a process that gets no processor does not compute.
func TestWatchStateComputes(t *testing.T) {
	start := time.Now()
	const may = 8 * time.Second
	var s watchState
	s.start(start)
	s.see(start, 1, 1000)
	for _, x := range []struct {
		after time.Duration
		ticks uint64
		want  bool
	}{
		{may, 800, false},
		{may + time.Second, 100, false},
		{may + time.Second, 101, true},
		{busyTimes * may, 100, false},
		{busyTimes*may + time.Second, 0, true},
	} {
		s := s
		s.see(start.Add(x.after), 1, 1000+x.ticks)
		if got := s.computes(start.Add(x.after), may); got != x.want {
			t.Errorf("%v after the event, with %d ticks: %v", x.after, x.ticks, got)
		}
	}
	s.see(start.Add(time.Second), 1, 5) // of another process
	if s.computes(start.Add(may+time.Second), may) {
		t.Error("the time of another process counts")
	}
}

// TestSleeps: a process that is not resumed does not count as sleeping.
func TestSleeps(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p := &watched{pid: cmd.Process.Pid}
	becomes := func(want bool) {
		for end := time.Now().Add(time.Minute); tracee.Sleeps(p.pid, 0) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d sleeps: %v; %s", p.pid, !want, tracee.KernelState(p.pid, strconv.Itoa(p.pid)))
			}
		}
	}
	becomes(true)
	err := ptrace.OnThread(func() error {
		if err := ptrace.Seize(p.pid, 0); err != nil {
			return err
		}
		if err := ptrace.Interrupt(p.pid); err != nil {
			return err
		}
		if _, err := ptrace.WaitFor(p.pid); err != nil {
			return err
		}
		becomes(false)
		return ptrace.Cont(p.pid, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	becomes(true)
}

// TestLateTracer: the watchdog does not act on a process that is in a stop because its tracer is
// late. Later it reports where the process sleeps.
func TestLateTracer(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	w := &watchdog{sleeping: 2 * watchInterval, computing: time.Hour, tracer: pid, quit: make(chan struct{})}
	w.process.Store(&watched{pid: pid})
	err := ptrace.OnThread(func() error {
		if err := ptrace.Seize(pid, 0); err != nil {
			return err
		}
		if err := ptrace.Interrupt(pid); err != nil {
			return err
		}
		if _, err := ptrace.WaitFor(pid); err != nil {
			return err
		}
		w.ended.Go(w.keepWatch)
		time.Sleep(10 * watchInterval)
		if w.woke() {
			t.Errorf("a stopped process is stuck: %s", w.saw)
		}
		return ptrace.Cont(pid, 0)
	})
	if err != nil {
		w.stop()
		t.Fatal(err)
	}
	w.ended.Wait()
	if w.wake.Load() != wakeSleeping || !strings.Contains(w.saw, fmt.Sprintf("thread %d is S", pid)) {
		t.Errorf("woken for %d: %s", w.wake.Load(), w.saw)
	}
}
