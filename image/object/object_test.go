package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/internal/crashtest"
)

// TestAgainstDebugELF compares headers and contents with the standard
// library's reader over objects of different makers.
func TestAgainstDebugELF(t *testing.T) {
	for _, path := range []string{build(t), build(t, "-no-pie", "-static"), build(t, "-c"), systemLibc(t)} {
		f := open(t, path)
		want, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		if f.Damage() != nil || f.Type() != uint16(want.Type) {
			t.Errorf("%s: type %d, damage %v, want type %v", path, f.Type(), f.Damage(), want.Type)
		}
		compareSections(t, f, want)
		compareSegments(t, f, want)
	}
}

func compareSections(t *testing.T, f *File, want *elf.File) {
	t.Helper()
	for i, w := range want.Sections {
		g := &f.sections[i]
		if g.Name != w.Name || g.Addr != w.Addr || g.Size != w.Size || g.Offset != w.Offset ||
			g.Type != uint32(w.Type) || g.Flags != uint64(w.Flags) {
			t.Errorf("%s: section %d is %+v, want %+v", f.Path(), i, g, w.SectionHeader)
		}
		data, err := g.Data()
		if w.Type == elf.SHT_NOBITS || w.Type == elf.SHT_NULL {
			if err == nil {
				t.Errorf("%s: %s has data", f.Path(), w.Name)
			}
			continue
		}
		expect, _ := w.Data()
		if err != nil || !bytes.Equal(data, expect) {
			t.Errorf("%s: %s: other contents, error %v", f.Path(), w.Name, err)
		}
		if w.Flags&elf.SHF_ALLOC != 0 && w.Size > 0 && f.Type() != uint16(elf.ET_REL) {
			got := make([]byte, w.Size)
			if n, err := f.ReadAddr(got, w.Addr); n != len(got) || err != nil || !bytes.Equal(got, expect) {
				t.Errorf("%s: ReadAddr of %s gives %d bytes, error %v", f.Path(), w.Name, n, err)
			}
			if s := f.SectionAt(w.Addr + w.Size - 1); s == nil || s.Name != w.Name {
				t.Errorf("%s: SectionAt the end of %s is %v", f.Path(), w.Name, s)
			}
		}
	}
}

func compareSegments(t *testing.T, f *File, want *elf.File) {
	t.Helper()
	i, tls := 0, false
	for _, p := range want.Progs {
		expect := Segment{Vaddr: p.Vaddr, Memsz: p.Memsz, Offset: p.Off, Filesz: p.Filesz, Flags: uint32(p.Flags), Align: p.Align}
		switch p.Type {
		case elf.PT_LOAD:
			if f.Segments()[i] != expect {
				t.Errorf("%s: segment %d is %+v, want %+v", f.Path(), i, f.Segments()[i], expect)
			}
			i++
		case elf.PT_TLS:
			got, ok := f.TLS()
			if tls = true; !ok || got != expect {
				t.Errorf("%s: TLS is %+v %v, want %+v", f.Path(), got, ok, expect)
			}
		}
	}
	if _, ok := f.TLS(); i != len(f.Segments()) || ok != tls {
		t.Errorf("%s: %d segments, want %d; TLS %v, want %v", f.Path(), len(f.Segments()), i, ok, tls)
	}
}

func TestBuildID(t *testing.T) {
	const id = "0123456789abcdef00ff"
	if got := open(t, build(t, "-Wl,--build-id=0x"+id)).BuildID(); got != id {
		t.Errorf("build-id %q, want %q", got, id)
	}
	if got := open(t, build(t, "-Wl,--build-id=none")).BuildID(); got != "" {
		t.Errorf("build-id %q without a note", got)
	}
	path := build(t, "-Wl,--build-id=0x"+id)
	if got := open(t, withoutSections(t, path)).BuildID(); got != id {
		t.Errorf("build-id %q without section headers, want %q", got, id)
	}
}

// withoutSections removes the section table, as sstrip(1) does.
func withoutSections(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b[40:48] {
		b[40+i] = 0
	}
	b[60], b[61], b[62], b[63] = 0, 0, 0, 0
	bare := filepath.Join(t.TempDir(), filepath.Base(path))
	writeFile(t, bare, b)
	return bare
}

func TestReadAddrRefuses(t *testing.T) {
	f := open(t, build(t, "-no-pie"))
	zeroed, ok := f.SymbolNamed("zeroed")
	if !ok {
		t.Fatal("the program has no symbol zeroed")
	}
	for _, addr := range []uint64{zeroed.Value + 128, 0, ^uint64(0), 1 << 47} {
		if n, err := f.ReadAddr(make([]byte, 8), addr); n != 0 || err == nil {
			t.Errorf("ReadAddr(%#x) read %d bytes that the file does not have", addr, n)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	object, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, v byte) []byte {
		b := bytes.Clone(object)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"empty": nil, "short": object[:63], "text": []byte(strings.Repeat("#!/bin/sh\n", 20)),
		"32 bit": change(4, 1), "big-endian": change(5, 2), "machine": change(18, 40),
		"core": change(16, 4), "type": change(16, 99), "program header size": change(54, 3),
	} {
		path := filepath.Join(dir, name)
		writeFile(t, path, b)
		var format *FormatError
		if _, err := Open(path); !errors.As(err, &format) {
			t.Errorf("%s: error %v", name, err)
		} else if !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: the error %q does not name the file", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: error %v", err)
	}
}

// TestOpenSpecialFiles: a plain open of a FIFO would hang.
func TestOpenSpecialFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, path := range []string{fifo, "/dev/zero", "/dev/tty", t.TempDir()} {
			if _, err := Open(path); err == nil {
				t.Errorf("%s was opened", path)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("opening a special file hangs")
	}
}

// TestTruncatedUnderneath truncates the file after it was mapped.
func TestTruncatedUnderneath(t *testing.T) {
	path := copyFile(t, systemLibc(t), filepath.Join(t.TempDir(), "libc"))
	f := open(t, path)
	text := f.Section(".text")
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := f.ReadAddr(make([]byte, 64), text.Addr); !errors.As(err, &format) || format.Offset != text.Offset {
		t.Errorf("ReadAddr of a page that is gone: %v, want offset %#x", err, text.Offset)
	}
	if s, ok := f.SymbolAt(text.Addr); ok {
		t.Errorf("SymbolAt a page that is gone: %+v", s)
	}
	if s, ok := f.SymbolNamed("write"); ok {
		t.Errorf("SymbolNamed on a page that is gone: %+v", s)
	}
}

// TestCutFiles opens every prefix of an object, in steps.
func TestCutFiles(t *testing.T) {
	whole, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	opened, damaged := 0, 0
	for n := 0; n <= len(whole); n += 61 {
		f, err := FromBytes("cut", bytes.Clone(whole[:n]))
		if err != nil {
			continue
		}
		opened++
		if f.Damage() != nil {
			damaged++
		}
		walk(f)
	}
	if opened < 10 || damaged < opened-2 {
		t.Errorf("%d prefixes opened, %d of them said to be damaged", opened, damaged)
	}
}

// walk calls every method of an object.
func walk(f *File) {
	f.BuildID()
	f.SymbolSource()
	f.HasDWARF()
	f.TLS()
	for i := range f.sections {
		s := &f.sections[i]
		s.Data()
		f.SectionAt(s.Addr)
		f.SymbolAt(s.Addr)
		f.SymbolAt(s.Addr + s.Size/2)
	}
	var b [16]byte
	for _, s := range f.Segments() {
		f.ReadAddr(b[:], s.Vaddr+s.Filesz-8)
		f.SymbolAt(s.Vaddr + s.Memsz/2)
	}
	own := f.symbols.own()
	for _, t := range []*symbolTable{own.static, own.dynamic, f.symbols.mini()} {
		if t == nil {
			continue
		}
		for i := range min(t.count(), 1000) {
			s := t.symbolAt(i)
			f.SymbolAt(s.value)
			if i < 100 {
				f.SymbolNamed(string(t.rawName(&s)))
			}
		}
	}
	for i := range min(len(f.symbols.links().stubs), 100) {
		f.SymbolAt(f.symbols.links().stubs[i].addr)
	}
	f.SymbolNamed("read@plt")
	f.SymbolNamed("main")
	f.debugLink()
	f.altLink()
	f.checkSplitID(1)
}

// TestVDSO reads the object that the kernel maps into every process.
func TestVDSO(t *testing.T) {
	f, err := FromBytes("[vdso]", vdso(t))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := f.SymbolNamed("__vdso_clock_gettime")
	if !ok || s.Kind != SymbolFunc || s.Size == 0 {
		t.Fatalf("__vdso_clock_gettime is %+v %v", s, ok)
	}
	if at, ok := f.SymbolAt(s.Value); !ok || at.Value != s.Value {
		t.Errorf("SymbolAt gives %+v %v", at, ok)
	}
	if f.BuildID() == "" {
		t.Error("no build-id")
	}
}

func vdso(t *testing.T) []byte {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			t.Fatal(err)
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		b := make([]byte, end-start)
		if _, err := mem.ReadAt(b, start); err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Skip(&crashtest.UnsupportedError{What: "the kernel maps no vDSO"})
	return nil
}

func TestListing(t *testing.T) {
	f := open(t, build(t))
	if got := f.Sections(); len(got) < 20 || got[1] != f.Section(got[1].Name) {
		t.Errorf("%d sections", len(got))
	}
	want, ok := f.SymbolNamed("local_to_thread")
	if !ok {
		t.Fatal("no local_to_thread")
	}
	if s, ok := f.ThreadLocalAt(want.Value + 3); !ok || s != want {
		t.Errorf("ThreadLocalAt is %+v %v, want %+v", s, ok, want)
	}
	if s, ok := f.ThreadLocalAt(1 << 20); ok {
		t.Errorf("ThreadLocalAt far away is %+v", s)
	}
}

func TestReadOffset(t *testing.T) {
	path := build(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, size := open(t, path), uint64(len(whole))
	for _, c := range []struct {
		offset, length uint64
		want           int
	}{{0, 64, 64}, {size - 10, 10, 10}, {size - 10, 11, 10}, {size, 1, 0}, {^uint64(0), 8, 0}} {
		b := make([]byte, c.length)
		n, err := f.ReadOffset(b, c.offset)
		if n != c.want || (err == nil) != (uint64(n) == c.length) || n > 0 && !bytes.Equal(b[:n], whole[c.offset:c.offset+uint64(n)]) {
			t.Errorf("%d bytes at %#x: %d, %v", c.length, c.offset, n, err)
		}
	}
}
