package replay_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/replay/record"
)

// replayedVariable names the recording that TestUnderOtherCache replays.
const replayedVariable = "DIAGNOSE_TEST_REPLAYED"

// TestUnderOtherCache is run by TestLinkerCache, where the system's cache is another one.
func TestUnderOtherCache(t *testing.T) {
	dir := os.Getenv(replayedVariable)
	if dir == "" {
		t.Skip("it is run by TestLinkerCache")
	}
	recordtest.Identical(t, dir, 1)
}

// TestLinkerCache: a recording is replayed where the dynamic linker's cache has become larger or
// smaller, or is gone. It opens libraries later as well.
func TestLinkerCache(t *testing.T) {
	program := built(t, "opening", `
#include <dlfcn.h>
#include <stdlib.h>
int main(void) { if (dlopen("libm.so.6", RTLD_NOW)) abort(); }
`)
	dir := recordtest.RecordProgram(t, program, nil, "", "SIGABRT").Dir
	cache, err := os.ReadFile(record.LinkerCachePath)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, record.LinkerCacheName)); err != nil || !bytes.Equal(kept, cache) {
		t.Fatalf("the recording has %d bytes of the cache, not %d: %v", len(kept), len(cache), err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string][]byte{
		"larger": append(bytes.Clone(cache), make([]byte, 5*4096)...), "smaller": cache[:len(cache)/2], "empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cache")
			if err := os.WriteFile(file, other, 0o644); err != nil {
				t.Fatal(err)
			}
			run := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
				`mount --bind "$0" `+record.LinkerCachePath+` || exit 77; exec "$@"`, file, self, "-test.run", "^TestUnderOtherCache$", "-test.v")
			run.Env = append(os.Environ(), replayedVariable+"="+dir)
			out, err := run.CombinedOutput()
			if text := string(out); strings.HasPrefix(text, "unshare:") || run.ProcessState.ExitCode() == 77 {
				t.Skipf("no mount namespace of one's own here: %s", out)
			}
			if err != nil || !bytes.Contains(out, []byte("--- PASS: TestUnderOtherCache")) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestNoLinkerCache: a process that was recorded where there was no cache finds none, and one with
// another cache than the recorded one starts otherwise, so the recorded one is really used.
func TestNoLinkerCache(t *testing.T) {
	dir := recordtest.RecordProgram(t, built(t, "crashing", crashing), nil, "", "SIGABRT").Dir
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.ReadFile(filepath.Join(dir, record.LinkerCacheName))
	if err != nil {
		t.Fatal(err)
	}
	none := *m
	none.LinkerCache = record.Stored(nil)
	if err := replayedAs(t, dir, &none); err == nil || !strings.Contains(err.Error(), "starts otherwise") {
		t.Errorf("without a cache: %v", err)
	}
	longer := append(bytes.Clone(cache), make([]byte, 5*4096)...)
	other := *m
	other.LinkerCache = record.Stored(longer)
	if err := os.WriteFile(filepath.Join(dir, record.LinkerCacheName), longer, 0o600); err != nil {
		t.Fatal(err)
	}
	err = replayedAs(t, dir, &other)
	if err == nil || !strings.Contains(err.Error(), "starts otherwise") {
		t.Errorf("with a longer cache: %v", err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, record.LinkerCacheName), cache, 0o600), m.Write(dir)); err != nil {
		t.Fatal(err)
	}
	recordtest.Identical(t, dir, 1)
}
