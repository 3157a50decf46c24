package debug_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/debug"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// open records a program of testdata and opens a session at its end.
func open(t *testing.T, source string, flags ...string) (*debug.Session, *image.Process) {
	t.Helper()
	rec := recorded(t, source, flags...)
	return openWith(t, rec, replay.Common{}), coreOf(t, rec)
}

func coreOf(t *testing.T, rec *record.Recording) *image.Process {
	t.Helper()
	core, err := image.OpenCore(filepath.Join(rec.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return core
}

func openWith(t *testing.T, rec *record.Recording, common replay.Common) *debug.Session {
	t.Helper()
	s, err := debug.Open(t.Context(), rec, common)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// recorded records a program of testdata.
func recorded(t *testing.T, source string, flags ...string) *record.Recording {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	arguments := append([]string{"-g", "-pthread", "-o", exe, filepath.Join("testdata", source)}, flags...)
	if out, err := exec.Command("gcc", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", "SIGSEGV").Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

func symbol(t *testing.T, core *image.Process, name string) evidence.Addr {
	t.Helper()
	s, found := core.SymbolNamed(name)
	if !found {
		t.Fatalf("there is no %s", name)
	}
	return s.Addr
}
