package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/corpus"
	"diagnose/diagnosis/driver"
	"diagnose/internal/crashtest"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

func TestStatusOfErrors(t *testing.T) {
	for _, x := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), exitInternal},
		{&fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}, exitInternal},
		{usagef("x"), exitUsage},
		{&driver.InputError{Err: errors.New("x")}, exitInput},
		{&replay.InputError{Err: errors.New("x")}, exitInput},
		{&corpus.InputError{Err: errors.New("x")}, exitInput},
		{&eventlog.InputError{Err: fs.ErrNotExist}, exitInput},
		{&record.ManifestError{Field: "pid", What: "is 0"}, exitInput},
		{&eventlog.VersionError{File: "log", Got: 9, Want: 1}, exitInput},
		{&eventlog.CutError{File: "log"}, exitInput},
		{&eventlog.CorruptError{File: "log"}, exitInput},
		{context.Canceled, exitInterrupted},
		{errInterrupted, exitInterrupted},
	} {
		for _, err := range []error{x.err, fmt.Errorf("outer: %w", x.err), errors.Join(x.err, nil)} {
			if got := exitStatus(err); got != x.want {
				t.Errorf("%T %v: %d, want %d", x.err, err, got, x.want)
			}
		}
	}
}

// damages are what may be wrong with a file.
var damages = map[string]func(path string) error{
	"missing":   os.Remove,
	"empty":     func(path string) error { return os.Truncate(path, 0) },
	"cut":       func(path string) error { return resize(path, func(n int64) int64 { return n / 2 }) },
	"short":     func(path string) error { return os.Truncate(path, 20) },
	"sparse":    func(path string) error { return os.Truncate(path, 1<<40) },
	"all holes": func(path string) error { return errors.Join(os.Truncate(path, 0), os.Truncate(path, 1<<40)) },
	"flipped":   flipped,
	"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	"pipe":      func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
	"link to itself": func(path string) error {
		return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path))
	},
	"link to zeros": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
}

func resize(path string, to func(int64) int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, to(info.Size()))
}

// flipped inverts bytes in the head of a file and in the middle of it.
func flipped(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, at := range []int64{4, info.Size() / 2} {
		b := make([]byte, 8)
		n, _ := f.ReadAt(b, at)
		for i := range b[:n] {
			b[i] ^= 0xff
		}
		if _, err := f.WriteAt(b[:n], at); err != nil {
			return err
		}
	}
	return nil
}

// copied copies a directory's files, holes as holes.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			err = copySparse(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), info.Size())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func copySparse(from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<16)
	for at := int64(0); at < size; at += int64(len(block)) {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if err == nil && data >= at+int64(len(block)) || errors.Is(err, unix.ENXIO) {
			continue
		}
		n, _ := in.ReadAt(block, at)
		if _, err := out.WriteAt(block[:n], at); err != nil {
			return err
		}
	}
	return errors.Join(out.Truncate(size), out.Close())
}

const stepping = `
#include <stdlib.h>
static int guarded;
int main(void) { for (int i = 0; i < 3; i++) guarded++; abort(); }
`

// damagesVariable, if set, has every command run for each damage. Otherwise one command runs for
// each damage, in turn.
const damagesVariable = "DIAGNOSE_TEST_DAMAGES"

// byTurns returns the commands to run for the n-th damage.
func byTurns(n int, lines []string) []string {
	if os.Getenv(damagesVariable) == "all" {
		return lines
	}
	return []string{lines[n%len(lines)]}
}

// TestDamagedInput: whatever is wrong with a file of a recording, every command that reads it ends
// without a panic. It either works without the file or reports unusable input by its status. In
// commands RECORDING stands for the recording.
func TestDamagedInput(t *testing.T) {
	dir := recordedEnding(t, crashtest.Compile(t, crashtest.Program{Source: "stepping.c", Text: stepping, Flags: []string{"-O0"}}))
	commands := map[string][]string{
		record.ManifestName: {"recording show RECORDING", "replay RECORDING", "crash --recording RECORDING", "corpus add RECORDING", "minimize RECORDING", "trace --recording RECORDING --watch guarded"},
		record.LogName:      {"recording show RECORDING", "recording show --events RECORDING", "replay RECORDING", "crash --recording RECORDING --time 5s"},
		record.DataName:     {"replay RECORDING"},
		record.SitesName:    {"replay RECORDING", "crash --recording RECORDING --time 5s"},
		"start":             {"replay RECORDING"},
		record.CoreName:     {"replay --verify RECORDING", "crash --core RECORDING/core", "crash --recording RECORDING --time 5s", "trace --recording RECORDING --watch guarded"},
		record.TimingName:   {"replay RECORDING", "crash --recording RECORDING --time 5s"},
		record.ScheduleName: {"replay RECORDING", "minimize RECORDING"},
	}
	for file, lines := range commands {
		lines = append(lines, "recording check RECORDING")
		for n, damage := range slices.Sorted(maps.Keys(damages)) {
			t.Run(file+" "+damage, func(t *testing.T) {
				t.Parallel()
				made := copied(t, dir)
				path := filepath.Join(made, file)
				if _, err := os.Lstat(path); err != nil { // written by replays
					if err := os.WriteFile(path, []byte("what no replay writes\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := damages[damage](path); err != nil {
					t.Fatal(err)
				}
				for _, line := range byTurns(n, lines) {
					if strings.Contains(line, "--core") && damage == "pipe" {
						continue // the command waits for it
					}
					checkUnusable(t, line, made)
				}
			})
		}
	}
}

// TestDamagedManifest is the same test for the contents of a manifest.
func TestDamagedManifest(t *testing.T) {
	dir := recordedEnding(t, crashtest.Compile(t, crashtest.Program{Source: "stepping.c", Text: stepping, Flags: []string{"-O0"}}))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	set := func(part, field string, value any) func(m map[string]any) {
		return func(m map[string]any) {
			if part != "" {
				m = m[part].(map[string]any)
			}
			m[field] = value
		}
	}
	changes := map[string]func(m map[string]any){
		"agent is zeros":      set("agent", "path", "/dev/zero"),
		"agent is a pipe":     set("agent", "path", pipe),
		"agent is missing":    set("agent", "path", "/missing"),
		"another agent":       set("agent", "sha256", "00"),
		"program is zeros":    set("program", "path", "/dev/zero"),
		"program is a pipe":   set("program", "path", pipe),
		"program is missing":  set("program", "path", "/missing"),
		"no such directory":   set("program", "directory", "/missing"),
		"executed is missing": set("program", "executed", "/missing"),
		"executed is no file": set("program", "executed", "/etc"),
		"executed is data":    set("program", "executed", "/etc/passwd"),
		"no environment":      set("program", "environ", []string{}),
		"no arguments":        set("program", "args", []string{}),
		"no mappings":         set("start", "mappings", []any{}),
		"later version":       set("", "version", 99),
		"no process":          set("", "pid", -1),
		"unknown end":         set("outcome", "kind", "nonsense"),
		"a missing child":     set("", "children", []any{map[string]any{"path": "children/1-1", "pid": 5, "thread": 1, "ordinal": 3}}),
		"a missing parent":    set("", "parent", map[string]any{"pid": 5, "thread": 1, "ordinal": 3}),
	}
	lines := []string{"replay RECORDING", "crash --recording RECORDING --time 5s", "trace --recording RECORDING --watch guarded", "recording check RECORDING"}
	for n, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := copied(t, dir)
			path := filepath.Join(made, record.ManifestName)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			changes[name](m)
			if text, err = json.Marshal(m); err == nil {
				err = os.WriteFile(path, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range byTurns(n, lines) {
				checkUnusable(t, line, made)
			}
		})
	}
}

// TestDamagedArchive is the same test for an archive of a corpus.
func TestDamagedArchive(t *testing.T) {
	store := filepath.Join(t.TempDir(), "corpus")
	archive := filepath.Join(t.TempDir(), "archive")
	for _, args := range [][]string{{"corpus", "add", "--corpus", store, recordedEnding(t, crashtest.Compile(t, crashtest.Program{Source: "stepping.c", Text: stepping, Flags: []string{"-O0"}}))}, {"corpus", "export", "--corpus", store, "-o", archive}} {
		if got := diagnose(t, nil, args...); got.status != exitOK {
			t.Fatalf("%v: status %d, %s", args, got.status, got.stderr)
		}
	}
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for damage, make := range damages {
		if damage == "pipe" || damage == "sparse" { // the command waits for a pipe; zeros after the end do not belong to the archive
			continue
		}
		t.Run(damage, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "archive")
			if err := errors.Join(os.WriteFile(path, whole, 0o600), make(path)); err != nil {
				t.Fatal(err)
			}
			if got := diagnose(t, nil, "corpus", "import", "--corpus", filepath.Join(t.TempDir(), "corpus"), path); got.status != exitInput {
				t.Errorf("status %d, %s", got.status, got.stderr)
			}
		})
	}
}

// checkUnusable runs a command, which must either work without the damaged file or end with the
// status of unusable input.
func checkUnusable(t *testing.T, line, dir string) {
	t.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "RECORDING", dir))
	allowed := []int{exitOK, exitInput}
	switch args[0] {
	case "corpus":
		args = append(args, "--corpus", filepath.Join(t.TempDir(), "corpus"))
	case "recording":
		if args[1] == "check" {
			allowed = append(allowed, exitInternal) // its help says so about damage
		}
	case "replay", "trace":
		allowed = append(allowed, exitNotReplayed)
	}
	if got := diagnose(t, nil, args...); !slices.Contains(allowed, got.status) || strings.Contains(got.stderr, "panic") || strings.Contains(got.stderr, "goroutine ") {
		t.Errorf("%s: status %d: %.600s", line, got.status, got.stderr)
	}
}
