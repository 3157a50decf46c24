package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// badStore has a cause that one pass finds. Its experiments never end if enough of them are asked
// for.
const badStore = `
struct user { int logins; };
static struct user one;
static struct user *current = &one;
__attribute__((noinline)) static void logout(void) { current = 0; }
int main(void)
{
	logout();
	return ++current->logins;
}
`

// session is a run of crash on a terminal of its own, whose keys send signals.
type session struct {
	cmd    *exec.Cmd
	master *os.File
	stdout bytes.Buffer

	mu    sync.Mutex
	shown []byte
}

func (s *session) says(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.shown, []byte(text))
}

// startSession runs crash with standard output apart, so that the report is not
// mixed with the progress line.
func startSession(t *testing.T, args ...string) *session {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, slave := terminal(t)
	s := &session{cmd: exec.Command(exe, args...), master: master}
	s.cmd.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1", "TERM=xterm")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, &s.stdout, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	// If the tests run in the background, the shell makes them and their children ignore the key's
	// signal. A handler here does not pass to the children.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT)
	err = s.cmd.Start()
	signal.Stop(ignored)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	slave.Close()
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			s.mu.Lock()
			s.shown = append(s.shown, buffer[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// await polls until so returns true, as long as a busy machine may need.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not get that far", what)
		}
	}
}

func (s *session) press(t *testing.T) {
	t.Helper()
	if _, err := s.master.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
}

// processesOf returns the processes that run the program, in any state.
func processesOf(program string) []string {
	var list []string
	names, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, name := range names {
		if exe, err := os.Readlink(name); err == nil && exe == program {
			list = append(list, name)
		}
	}
	return list
}

func (s *session) leavesNothing(t *testing.T, program string) {
	t.Helper()
	await(t, "the replayed processes end", func() bool { return len(processesOf(program)) == 0 })
	await(t, "the process group ends", func() bool { return syscall.Kill(-s.cmd.Process.Pid, 0) == syscall.ESRCH })
}

// Ctrl-C ends the experiments and not the report.
func TestCrashInterrupted(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "logout.c", Text: badStore, Flags: []string{"-O0"}})
	dir := recordedAt(t, exe)
	for format, says := range map[string][]string{
		"text":     {"interrupted  the report has the findings until then", "logout.c:5", "it was interrupted; not done: "},
		"markdown": {"- **interrupted**: the report has the findings until then", "logout.c:5", "it was interrupted; not done: "},
		"json":     {`"interrupted": true`},
	} {
		t.Run(format, func(t *testing.T) {
			s := startSession(t, "crash", "--recording", dir, "--experiments", "1000000000", "--format", format)
			await(t, "an experiment", func() bool { return s.says("experiment: ") })
			s.press(t)
			s.cmd.Wait()
			if status := s.cmd.ProcessState.ExitCode(); status != exitInterrupted {
				t.Errorf("%v, want status %d: %s", s.cmd.ProcessState, exitInterrupted, s.shown)
			}
			await(t, "the last line", func() bool { return s.says("interrupted; the report has the findings until then") })
			for _, want := range says {
				if !strings.Contains(s.stdout.String(), want) {
					t.Errorf("%q is missing in\n%s", want, s.stdout.String())
				}
			}
			if format == "json" {
				checkInterrupted(t, s.stdout.Bytes())
			}
			s.leavesNothing(t, exe)
		})
	}
}

func checkInterrupted(t *testing.T, text []byte) {
	t.Helper()
	var d reports.Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if c := d.Case.Diagnosis.Causes; len(c) == 0 || c[0].Proof == evidence.Proved {
		t.Errorf("causes %+v: want one that is not proved", c)
	}
	if l := evidence.LimitOf(d.Case.Diagnosis.Coverage.Limits, evidence.LimitInterrupted); l == nil || len(l.Names) == 0 {
		t.Errorf("limits %+v", d.Case.Diagnosis.Coverage.Limits)
	}
}

// If the command hangs after the first Ctrl-C, a second one ends it: here it writes the report to a
// pipe without a reader.
func TestCrashInterruptedTwice(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "logout.c", Text: badStore, Flags: []string{"-O0"}})
	dir := recordedAt(t, exe)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSession(t, "crash", "--recording", dir, "--experiments", "1000000000", "--output", pipe)
	await(t, "an experiment", func() bool { return s.says("experiment: ") })
	ended := make(chan struct{})
	go func() { s.cmd.Wait(); close(ended) }()
	presses := 0
	await(t, "the end", func() bool {
		if presses < 1000 {
			s.press(t)
			presses++
		}
		select {
		case <-ended:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGINT || presses < 2 {
		t.Errorf("%v after %d presses, want an end by SIGINT after two: %s", s.cmd.ProcessState, presses, s.shown)
	}
	s.leavesNothing(t, exe)
}

// If nothing is proved for lack of time, "unknown" comes with the reason and a command that
// continues.
func TestCrashSaysHowToGoOn(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "logout.c", Text: badStore, Flags: []string{"-O0"}})
	dir := recordedAt(t, exe)
	got := diagnose(t, nil, "crash", "--recording", dir, "--time", "1ns")
	_, cause, _ := strings.Cut(got.stdout, "\nCause\n")
	cause, _, _ = strings.Cut(cause, "\n\nFailing instruction\n")
	for _, want := range []string{"unknown: ", "because  the time was used up (--time 1ns); not done: memory errors", fmt.Sprintf("next     diagnose crash --recording %s --time 1m0s  # ", dir)} {
		if !strings.Contains(cause, want) {
			t.Errorf("%q is missing in %q of\n%s", want, cause, got.stdout)
		}
	}
	if strings.Count(got.stdout, "the time was used up") != 1 {
		t.Errorf("it is said again:\n%s", got.stdout)
	}
}
