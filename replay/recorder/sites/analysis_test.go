package sites

import (
	"bufio"
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// stopped returns a shell that is stopped after the commands.
func stopped(t *testing.T, commands string) int {
	t.Helper()
	c := exec.Command("sh", "-c", commands+"; echo; kill -STOP $$")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if stop, err := ptrace.WaitJob(c.Process.Pid); err != nil || stop.Kind != ptrace.JobStop {
		t.Fatalf("%v, %v, want a stop", stop, err)
	}
	return c.Process.Pid
}

func TestEndsAtOnce(t *testing.T) {
	for _, c := range []struct {
		commands string
		signal   syscall.Signal
		want     bool
	}{
		{":", unix.SIGTERM, true},
		{":", unix.SIGUSR1, true},
		{":", unix.SIGWINCH, false},
		{"trap : TERM", unix.SIGTERM, false},
		{"trap '' TERM", unix.SIGTERM, false},
		{"trap : TERM", unix.SIGHUP, true},
	} {
		pid := stopped(t, c.commands)
		if endsAtOnce(pid) {
			t.Errorf("%s: it ends before a signal came", c.commands)
		}
		if err := unix.Kill(pid, c.signal); err != nil {
			t.Fatal(err)
		}
		if got := endsAtOnce(pid); got != c.want {
			t.Errorf("%s: %v: %v, want %v", c.commands, c.signal, got, c.want)
		}
	}
}

// TestAnalysisEndsWithItsProcess: an analysis does not continue for a process that a signal
// will end.
func TestAnalysisEndsWithItsProcess(t *testing.T) {
	pid := stopped(t, ":")
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var told []Analysis
	done := make(chan *mappedCode)
	err := awaitAnalysis(pid, 3, done, func() { close(done) }, func(a Analysis) { told = append(told, a) })
	if !errors.Is(err, errDying) {
		t.Errorf("%v, want %v", err, errDying)
	}
	for _, a := range told {
		t.Errorf("told of %+v, though it took no time", a)
	}
}

// TestLongAnalysisIsTold: the progress and the end are reported.
func TestLongAnalysisIsTold(t *testing.T) {
	pid := stopped(t, ":")
	var told []Analysis
	done := make(chan *mappedCode, 1)
	done <- &mappedCode{path: "/lib/a.so"}
	tell := func(a Analysis) {
		if told = append(told, a); len(told) == 1 {
			close(done)
		}
	}
	if err := awaitAnalysis(pid, 2, done, func() {}, tell); err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 || told[0] != (Analysis{1, 2, "/lib/a.so"}) || !told[len(told)-1].Ended() {
		t.Errorf("told %+v", told)
	}
}
