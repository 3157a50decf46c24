package corestream_test

import (
	"bytes"
	"debug/elf"
	"errors"

	"os"
	"strings"
	"testing"

	"diagnose/fleet/collect/corestream"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

const program = `
#include <stdlib.h>
#include <string.h>
#include <signal.h>
static char table[1 << 18] = "a table of the program's file";
char *copy;
int main(void)
{
	copy = strdup(getenv("DB_PASSWORD"));
	table[100] = 1;
	raise(SIGSEGV);
}
`

// crash returns the core of the program, with the pages of mapped files.
func crash(t *testing.T, env ...string) []byte {
	t.Helper()
	crashtest.NeedKernelCores(t)
	const filter = "/proc/self/coredump_filter"
	before, err := os.ReadFile(filter)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filter, []byte("0x7f"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(filter, append([]byte("0x"), bytes.TrimSpace(before)...), 0)
	exe := crashtest.Compile(t, crashtest.Program{Source: "program.c", Text: program})
	core, err := os.ReadFile(crashtest.Core(t, exe, crashtest.Run{Env: env}))
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// objects are the files of a core, from this machine.
func objects(t *testing.T, h *corestream.Head) map[int]*corestream.Object {
	t.Helper()
	byPath, list := map[string]*corestream.Object{}, map[int]*corestream.Object{}
	for i, f := range h.Files {
		if byPath[f.Path] == nil {
			data, err := os.ReadFile(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			byPath[f.Path] = &corestream.Object{Contents: bytes.NewReader(data), Size: uint64(len(data))}
		}
		list[i] = byPath[f.Path]
	}
	return list
}

// rewrite returns the new core.
func rewrite(t *testing.T, core []byte, o func(*corestream.Head) corestream.Options) ([]byte, *corestream.Head, *corestream.Result) {
	t.Helper()
	h, err := corestream.ReadHead(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	result, err := h.Rewrite(&out, o(h))
	if err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	if uint64(len(b)) != result.Bytes {
		t.Errorf("%d bytes, and the result says %d", len(b), result.Bytes)
	}
	copy(b, result.Header[:])
	return b, h, result
}

// memory reads a core as debug/elf sees it; the objects serve what it lacks.
func memory(t *testing.T, core []byte, addr uint64, h *corestream.Head, objects map[int]*corestream.Object) (byte, bool) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr >= p.Memsz {
			continue
		}
		if addr-p.Vaddr < p.Filesz {
			return core[p.Off+addr-p.Vaddr], true
		}
		i := h.FileAt(addr)
		if i < 0 || objects[i] == nil {
			return 0, false
		}
		var b [1]byte
		_, err := objects[i].Contents.ReadAt(b[:], int64(h.Files[i].Offset+addr-h.Files[i].Start))
		return b[0], err == nil
	}
	return 0, false
}

// TestRewrite: the new core, with the files, has the memory of the old one, and is smaller.
func TestRewrite(t *testing.T) {
	core := crash(t, "DB_PASSWORD=correct-horse", "PLAIN=nothing of interest")
	var files map[int]*corestream.Object
	small, h, result := rewrite(t, core, func(h *corestream.Head) corestream.Options {
		files = objects(t, h)
		return corestream.Options{Objects: files}
	})
	if h.Thread.Signal != 11 || h.Thread.PC == 0 || h.Command != "program" || len(h.Files) < 4 {
		t.Errorf("%+v", h)
	}
	const padding = 4096 // at most: the kernel's core has its first segment at a page's start, and the size of the notes differs with the processor
	if result.LeftOut < 1<<20 || result.LeftOut+result.Bytes+padding < uint64(len(core)) {
		t.Errorf("%d bytes of %d are left out, %d stay", result.LeftOut, len(core), result.Bytes)
	}
	old, err := elf.NewFile(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range old.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		for at := uint64(0); at < p.Filesz; at += 1021 {
			got, ok := memory(t, small, p.Vaddr+at, h, files)
			if want := core[p.Off+at]; !ok || got != want {
				t.Fatalf("at %#x: %#x (%v), and the old core has %#x", p.Vaddr+at, got, ok, want)
			}
		}
	}
}

// TestUnproved: without its first page in the core, a file is not taken for the one that was mapped.
func TestUnproved(t *testing.T) {
	core := crash(t, "DB_PASSWORD=correct-horse")
	_, _, result := rewrite(t, core, func(h *corestream.Head) corestream.Options {
		files := objects(t, h)
		for _, o := range files {
			data := make([]byte, o.Size)
			o.Contents.ReadAt(data, 0)
			data[8] ^= 1
			o.Contents = bytes.NewReader(data)
		}
		return corestream.Options{Objects: files}
	})
	if result.LeftOut != 0 {
		t.Errorf("%d bytes are left out", result.LeftOut)
	}
}

// TestRedact: secrets of the environment are nowhere in the new core if they were learnt before, and
// not in the environment if they were not.
func TestRedact(t *testing.T) {
	long := strings.Repeat("long-", 1000)
	env := []string{"DB_PASSWORD=correct-horse", "A=1", "SESSION_TOKEN=" + long, "DATABASE_URL=postgres://eve:tulips99@host/db", "PLAIN=nothing of interest"}
	core := crash(t, env...)
	for _, learnt := range []bool{true, false} {
		r := new(corestream.Redactor)
		if learnt {
			r.Learn([]byte(strings.Join(env, "\x00") + "\x00"))
		}
		clean, _, _ := rewrite(t, core, func(*corestream.Head) corestream.Options { return corestream.Options{Redactor: r} })
		for _, gone := range []string{"DB_PASSWORD=correct-horse", "tulips99@", "long-long-"} {
			if !bytes.Contains(core, []byte(gone)) {
				t.Errorf("the old core lacks %q", gone)
			}
			if bytes.Contains(clean, []byte(gone)) {
				t.Errorf("learnt %v: the new core has %.40q", learnt, gone)
			}
		}
		if learnt == bytes.Contains(clean, []byte("correct-horse")) {
			t.Errorf("learnt %v: the copy in the heap", learnt)
		}
		if !bytes.Contains(clean, []byte("PLAIN=nothing of interest")) || !bytes.Contains(clean, []byte("DB_PASSWORD=*************\x00")) {
			t.Errorf("learnt %v: the other variables", learnt)
		}
		if got := strings.Join(r.Redacted().Names, " "); !strings.Contains(got, "DB_PASSWORD") || !strings.Contains(got, "DATABASE_URL") || strings.Contains(got, "PLAIN") {
			t.Errorf("learnt %v: %s", learnt, got)
		}
	}
}

// TestCut: what the stream lacks, the new core lacks as well, and says so.
func TestCut(t *testing.T) {
	core := crash(t, "DB_PASSWORD=correct-horse")
	for _, n := range []int{len(core) - 1, len(core) / 2} {
		small, _, result := rewrite(t, core[:n], func(h *corestream.Head) corestream.Options {
			return corestream.Options{Objects: objects(t, h)}
		})
		if result.Missing == 0 {
			t.Error("nothing is missing")
		}
		f, err := elf.NewFile(bytes.NewReader(small))
		if err != nil {
			t.Fatal(err)
		}
		var past uint64
		for _, p := range f.Progs {
			if p.Off+p.Filesz > uint64(len(small)) {
				past += p.Filesz
			}
		}
		if past != result.Missing {
			t.Errorf("%d bytes are past the end, and %d are missing", past, result.Missing)
		}
	}
}

// TestFull: an error of the writer is returned.
func TestFull(t *testing.T) {
	core := crash(t, "DB_PASSWORD=correct-horse")
	h, err := corestream.ReadHead(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if _, err := h.Rewrite(&failing{err: full, left: 1 << 17}, corestream.Options{}); !errors.Is(err, full) {
		t.Error(err)
	}
}

type failing struct {
	err  error
	left int
}

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, f.err
	}
	return len(b), nil
}

// TestRefused: files that are no cores.
func TestRefused(t *testing.T) {
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"nothing": nil, "text": bytes.Repeat([]byte("text"), 100), "a program": exe} {
		var format *corestream.FormatError
		if _, err := corestream.ReadHead(bytes.NewReader(b)); !errors.As(err, &format) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRewrite reads bytes as a core. The new core is one that debug/elf reads, and that is rewritten
// to itself.
func FuzzRewrite(f *testing.F) {
	f.Add(seed())
	f.Add(seed()[:600])
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := corestream.ReadHead(bytes.NewReader(data))
		if err != nil {
			return
		}
		r := new(corestream.Redactor)
		r.Learn([]byte("DB_PASSWORD=correct-horse\x00"))
		object := &corestream.Object{Contents: bytes.NewReader(make([]byte, 8*4096)), Size: 8 * 4096}
		o := corestream.Options{Redactor: r, Objects: map[int]*corestream.Object{0: object}}
		var out bytes.Buffer
		result, err := h.Rewrite(&out, o)
		if err != nil {
			return
		}
		b := out.Bytes()
		if len(b) > len(data)+1<<20 {
			t.Fatalf("%d bytes of %d", len(b), len(data))
		}
		copy(b, result.Header[:])
		if _, err := elf.NewFile(bytes.NewReader(b)); err != nil && result.Missing == 0 {
			t.Fatal(err)
		}
	})
}

// seed is a small core with a file of zeros and a stack that has an environment.
func seed() []byte {
	return corestream.Seed()
}
