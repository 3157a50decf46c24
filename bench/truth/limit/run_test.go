package limit

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func run(t *testing.T, c Command) *Result {
	t.Helper()
	c.Path, c.Dir = "/bin/sh", t.TempDir()
	if c.Time == 0 {
		c.Time = 20 * time.Second
	}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStatus(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "echo out; echo err >&2; exit 3"}})
	if r.Status != 3 || r.Signal != 0 || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" || r.TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestSignal(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "kill -SEGV $$"}})
	if r.Signal != syscall.SIGSEGV || r.TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestTime(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "sleep 60 & sleep 60"}, Time: 200 * time.Millisecond})
	if !r.TimedOut {
		t.Errorf("%+v", r)
	}
}

func TestAsleep(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "exec sleep 60"}, Asleep: 300 * time.Millisecond})
	if !r.Asleep || r.TimedOut {
		t.Errorf("%+v", r)
	}
	r = run(t, Command{Args: []string{"-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done"}, Asleep: 5 * time.Second})
	if r.Asleep || r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

func TestProcessorTime(t *testing.T) {
	if r := run(t, Command{Args: []string{"-c", "while :; do :; done"}, Processor: time.Second, Time: time.Minute}); !r.TimedOut || r.Used == 0 {
		t.Errorf("%+v", r)
	}
}

func TestInterrupt(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "trap 'echo asked; exit 7' INT; while :; do sleep 0.01; done"}, Interrupt: true, Time: 300 * time.Millisecond})
	if !r.TimedOut || r.Status != 7 || string(r.Stdout) != "asked\n" {
		t.Errorf("%+v", r)
	}
}

func TestOutputIsBounded(t *testing.T) {
	r := run(t, Command{Args: []string{"-c", "head -c 5000000 /dev/zero"}})
	if !r.Cut || len(r.Stdout) != maximum {
		t.Errorf("cut is %v after %d bytes", r.Cut, len(r.Stdout))
	}
}

func TestMemory(t *testing.T) {
	if r := run(t, Command{Args: []string{"-c", "ulimit -d"}, Memory: 512}); strings.TrimSpace(string(r.Stdout)) != "524288" {
		t.Errorf("the limit is %s", r.Stdout)
	}
}
