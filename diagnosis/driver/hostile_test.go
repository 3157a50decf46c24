package driver_test

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// survives runs the analysis on input that may be damaged in any way. It must end in an error of
// the input or in a sound case, in which no stage panicked.
func survives(t *testing.T, what string, req driver.Request) *evidence.Case {
	t.Helper()
	c, err := driver.Crash(context.Background(), req)
	if err != nil {
		var input *driver.InputError
		if !errors.As(err, &input) {
			t.Errorf("%s: %v is no *InputError", what, err)
		}
		return nil
	}
	if err := c.Check(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, l := range c.Limits {
		if strings.Contains(l.Text, "failed inside") {
			t.Errorf("%s: %s", what, l.Text)
		}
	}
	return c
}

func TestCoreCutAnywhere(t *testing.T) {
	crashtest.NeedKernelCores(t)
	x := crashtest.Named(t, "null_read").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	data := read(t, x.Core)
	path := filepath.Join(t.TempDir(), "core")
	partial := 0
	for end := 0; end < len(data); end += 4096 {
		c := survives(t, "cut", driver.Request{Core: write(t, path, data[:end])})
		if c == nil {
			continue
		}
		partial++
		if !severe(c, "truncated") {
			t.Errorf("cut at %d of %d: no severe limit says so: %v", end, len(data), c.Limits)
		}
	}
	if partial == 0 {
		t.Error("no cut core gave a partial report")
	}
}

func severe(c *evidence.Case, word string) bool {
	for _, l := range c.Limits {
		if l.Severe && strings.Contains(l.Text, word) {
			return true
		}
	}
	return false
}

// garbage overwrites n places of data with random bytes.
func garbage(data []byte, r *rand.Rand, n int) []byte {
	data = bytes.Clone(data)
	for range n {
		i := r.IntN(len(data))
		for j := i; j < min(len(data), i+1+r.IntN(8)); j++ {
			data[j] = byte(r.Uint32())
		}
	}
	return data
}

func TestGarbageInNotes(t *testing.T) {
	x := crashtest.Named(t, "threads_work").Crash(t, crashtest.Variant{Name: "O2", Flags: []string{"-O2"}})
	data := read(t, x.Core)
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "core")
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range file.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		notes, err := io.ReadAll(p.Open())
		if err != nil {
			t.Fatal(err)
		}
		for round := range 60 {
			bad := bytes.Clone(data)
			copy(bad[p.Off:], garbage(notes, r, 1+round))
			survives(t, "notes", driver.Request{Core: write(t, path, bad)})
		}
	}
}

func TestGarbageInHeaders(t *testing.T) {
	x := crashtest.Named(t, "null_read").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	data := read(t, x.Core)
	path := filepath.Join(t.TempDir(), "core")
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		bad := bytes.Clone(data)
		copy(bad, garbage(data[:2048], r, 1+round%8))
		survives(t, "headers", driver.Request{Core: write(t, path, bad)})
	}
}

// Damage in one section of the executable must cost only the facts of that section.
func TestGarbageInSections(t *testing.T) {
	x := crashtest.Named(t, "cxx_throw_runtime").Crash(t, crashtest.Variant{Name: "O2", Flags: []string{"-O2"}})
	exe := read(t, x.Exe)
	file, err := elf.NewFile(bytes.NewReader(exe))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "exe")
	r := rand.New(rand.NewPCG(5, 6))
	damaged := 0
	for _, s := range file.Sections {
		switch s.Name {
		case ".eh_frame", ".eh_frame_hdr", ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
			".debug_loclists", ".debug_rnglists", ".debug_aranges", ".symtab", ".strtab", ".dynsym":
		default:
			continue
		}
		damaged++
		for round := range 12 {
			bad := bytes.Clone(exe)
			n := 1 << round % 200
			copy(bad[s.Offset:], garbage(exe[s.Offset:s.Offset+s.FileSize], r, n))
			c := survives(t, s.Name, driver.Request{Core: x.Core, Exe: write(t, path, bad)})
			if c == nil || c.Failure.Kind != evidence.CxxTerminate {
				t.Errorf("%s, round %d: the kind is lost: %+v", s.Name, round, c)
			}
		}
	}
	if damaged < 8 {
		t.Errorf("only %d sections were there to be damaged", damaged)
	}
}

func TestMismatchedExecutable(t *testing.T) {
	crashtest.NeedKernelCores(t)
	x := crashtest.Named(t, "null_read").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	other := crashtest.Named(t, "null_write").Build(t, crashtest.BuildOptions{Variant: crashtest.Variant{Name: "O0", Flags: []string{"-O0"}}})
	c := survives(t, "mismatch", driver.Request{Core: x.Core, Exe: other})
	if c == nil {
		t.Fatal("a mismatched executable ended the analysis")
	}
	if !severe(c, "build-id") {
		t.Errorf("no severe limit names the build-ids: %v", c.Limits)
	}
	// The instruction's bytes are not used either, so the pointer's own value
	// is not known.
	if c.Failure.Kind != evidence.NearNullPointer || c.Failure.Instruction != nil {
		t.Errorf("kind %s, instruction %v", c.Failure.Kind, c.Failure.Instruction)
	}
	for _, g := range c.Stacks {
		for _, f := range g.Stack.Frames {
			if strings.Contains(f.Site.File, "null_write") {
				t.Errorf("a frame is named by the wrong executable: %+v", f.Site)
			}
		}
	}
}
