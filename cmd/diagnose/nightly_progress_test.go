package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
)

// A quick night shows only its summary on a terminal, in plain lines.
func TestNightProgress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	if got := diagnose(t, nil, "corpus", "add", crashed(t), "--corpus", dir); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	text, status := onTerminal(t, nil, "nightly", "--corpus", dir, "--since", "3650d")
	if status != exitNewCause || strings.Contains(text, "diagnose: 1 of 1") || !strings.Contains(text, "1 new cause, 0 back, 0 known\r\n") {
		t.Errorf("status %d: %q", status, text)
	}
	// On a busy machine the progress line was shown and cleared.
	if plain := strings.ReplaceAll(strings.ReplaceAll(text, "\r\x1b[K", ""), "\r\n", ""); strings.ContainsAny(plain, "\r\x1b") {
		t.Errorf("%q", text)
	}
}

// A slow night shows one line on a terminal, no wider than the terminal, with its progress and the
// time left. The line is cleared at the end.
func TestNightProgressOnATerminal(t *testing.T) {
	master, slave := terminal(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 70}); err != nil {
		t.Fatal(err)
	}
	p := newNightProgress(slave, nil)
	p.start = time.Now().Add(-time.Hour)
	entry := func(program string) *corpus.Entry {
		return &corpus.Entry{ID: "0123456789abcdef", Program: "/srv/bin/" + program, Ended: "SIGSEGV"}
	}
	p.step(nightly.Progress{Total: 9, Entry: entry("server")})
	p.step(nightly.Progress{Done: 1, Total: 9, Entry: entry("server"), Result: &corpus.Result{}, Left: 130 * time.Second})
	p.step(nightly.Progress{Done: 3, Total: 9, Entry: entry("ser\x1b[2J\nver"), Left: 130 * time.Second})
	p.step(nightly.Progress{Done: 8, Total: 9, Entry: entry(strings.Repeat("long", 40)), Left: 90 * time.Minute})
	p.clear()
	slave.Close()
	// The read ends with EIO when the last writer has closed the terminal.
	shown, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	lines := strings.Split(string(shown), "\r\x1b[K")
	if len(lines) != 5 || lines[0] != "" || lines[4] != "" {
		t.Fatalf("%q", lines)
	}
	for i, want := range []string{"diagnose: 0 of 9: server SIGSEGV 0123456789ab", `diagnose: 3 of 9, about 2m0s left: ser\x1b[2J\nver SIGSEGV 0123`, "diagnose: 8 of 9, about 1h30m0s left: longlong"} {
		if got := lines[i+1]; !strings.HasPrefix(got, want) || len(got) >= 70 || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
