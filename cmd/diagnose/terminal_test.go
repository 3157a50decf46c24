package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

// terminal opens a pseudo-terminal (pts(4)): bytes written to the second file can be read from the
// first.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// onTerminal runs the command with a terminal as all three standard files and
// returns what appears there.
func onTerminal(t *testing.T, env []string, args ...string) (text string, status int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, slave := terminal(t)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(append(os.Environ(), "DIAGNOSE_TEST_MAIN=1", "TERM=xterm", "NO_COLOR="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	// The read ends with EIO when the last writer has closed the terminal.
	shown, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	cmd.Wait()
	return string(shown), cmd.ProcessState.ExitCode()
}

func TestColors(t *testing.T) {
	core := crashed(t)
	for _, x := range []struct {
		name    string
		env     []string
		args    []string
		colored bool
	}{
		{"terminal", nil, nil, true},
		{"output -", nil, []string{"--output", "-"}, true},
		{"NO_COLOR", []string{"NO_COLOR=1"}, nil, false},
		{"dumb terminal", []string{"TERM=dumb"}, nil, false},
		{"--no-color", nil, []string{"--no-color"}, false},
		{"json", nil, []string{"--format", "json"}, false},
		{"markdown", nil, []string{"--format", "markdown"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			text, status := onTerminal(t, x.env, append([]string{"crash", "--core", core}, x.args...)...)
			if status != exitOK || !strings.Contains(text, "null pointer read") {
				t.Fatalf("status %d: %q", status, text)
			}
			// The progress line clears itself with \x1b[K, which is no colour.
			text = strings.ReplaceAll(text, "\x1b[K", "")
			if got := strings.Contains(text, "\x1b["); got != x.colored {
				t.Errorf("coloured is %v, want %v: %.200q", got, x.colored, text)
			}
		})
	}
}

// A user who forgets the pipe must not wait for a silent command.
func TestCoreFromTerminal(t *testing.T) {
	text, status := onTerminal(t, nil, "crash", "--core", "-")
	if status != exitUsage || !strings.Contains(text, "standard input is a terminal") {
		t.Errorf("status %d: %q", status, text)
	}
}

// quietTerminal does not echo, because an echo may appear before or after the program's output. It
// keeps the input that was typed before a key's signal.
func quietTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, slave = terminal(t)
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Lflag = mode.Lflag&^unix.ECHO | unix.NOFLSH
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// A line that wraps could not be cleared.
func TestProgressFitsTheTerminal(t *testing.T) {
	_, slave := terminal(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Fatal(err)
	}
	p := newProgress(slave)
	for text, want := range map[string]string{
		"diagnose: scan":                       "diagnose: scan",
		"diagnose: " + strings.Repeat("ä", 60): "diagnose: " + strings.Repeat("ä", 26) + "...",
	} {
		if got := p.cut(text); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
