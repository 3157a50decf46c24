package debugtest

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/debug"
	"diagnose/debug/gdbserver"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

// ErrNoGDB says that there is no gdb to test with.
var ErrNoGDB = errors.New("there is no gdb")

// FindGDB returns gdb's path, or ErrNoGDB.
func FindGDB() (string, error) {
	path, err := exec.LookPath("gdb")
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNoGDB
	}
	return path, err
}

// Served is a recording that a server shows one debugger.
type Served struct {
	GDB, Program, Socket string
	Session              *debug.Session
	// Ended receives the server's error, or nil, when the debugger has left. After that Notes has what the server told its user, lines.
	Ended chan error
	Notes strings.Builder
}

// Serve records a program of package debug's testdata, which fails by SIGSEGV, and serves it. The test is skipped if
// there is no gdb.
func Serve(t testing.TB, source, compiler, level string) *Served {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	path, err := filepath.Abs(filepath.Join("..", "testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	Compile(t, compiler, "-g", level, "-pthread", "-o", program, path)
	return ServeProgram(t, program)
}

// Compile runs a compiler.
func Compile(t testing.TB, compiler string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// ServeProgram records a program, which fails by SIGSEGV, and serves it. The test is skipped if there is no gdb.
func ServeProgram(t testing.TB, program string, arguments ...string) *Served {
	t.Helper()
	gdb, err := FindGDB()
	if errors.Is(err, ErrNoGDB) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	x := &Served{GDB: gdb, Program: program, Socket: filepath.Join(t.TempDir(), "socket"), Ended: make(chan error, 1)}
	rec, err := record.Open(recordtest.RecordProgram(t, x.Program, arguments, "", "SIGSEGV").Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	s, err := debug.Open(context.WithoutCancel(t.Context()), rec, replay.Common{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	x.Session = s
	ctx := context.WithoutCancel(t.Context()) // which ends before the functions of t.Cleanup
	listener, err := net.Listen("unix", x.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err == nil {
			defer c.Close()
			err = (&gdbserver.Server{Session: s, Program: x.Program, Note: func(text string) { x.Notes.WriteString(text + "\n") }}).Serve(ctx, c)
		}
		x.Ended <- err
	}()
	return x
}

// NeedsWatches skips a test where the machine cannot stop a replay at accesses.
func NeedsWatches(t testing.TB) {
	t.Helper()
	var unsupported *replay.UnsupportedError
	if err := replay.WatchesWork(); errors.As(err, &unsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}
