package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"diagnose/internal/crashtest"
)

// TestCompressedSections compares contents with those of the same object
// before compression.
func TestCompressedSections(t *testing.T) {
	plainPath := build(t, "-gz=none")
	plain := open(t, plainPath)
	for _, method := range []string{"zlib-gabi", "zlib-gnu", "zstd"} {
		t.Run(method, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), method)
			if !strings.Contains(tool(t, "objcopy", "--help"), method) {
				t.Skip(&crashtest.UnsupportedError{What: "objcopy does not know " + method})
			}
			tool(t, "objcopy", "--compress-debug-sections="+method, plainPath, path)
			packed := open(t, path)
			if got := comparePacked(t, plain, packed); got == 0 {
				t.Error("no section is compressed: nothing was tested")
			}
			if !packed.HasDWARF() {
				t.Error("HasDWARF is false")
			}
		})
	}
}

func comparePacked(t *testing.T, plain, packed *File) (compressed int) {
	t.Helper()
	for i := range plain.sections {
		want := &plain.sections[i]
		if !strings.HasPrefix(want.Name, ".debug_") {
			continue
		}
		got := packed.Section(want.Name)
		if got == nil {
			t.Errorf("no section %s", want.Name)
			continue
		}
		if got.packing.method != notPacked {
			compressed++
		}
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() { got.Data() })
		}
		wait.Wait()
		expect, _ := want.Data()
		data, err := got.Data()
		if err != nil || !bytes.Equal(data, expect) || got.Size != uint64(len(data)) {
			t.Errorf("%s: %d bytes, size %d, want %d; error %v", want.Name, len(data), got.Size, len(expect), err)
		}
	}
	return compressed
}

// TestCompressionLies corrupts the claimed size, or the stream.
func TestCompressionLies(t *testing.T) {
	for _, method := range []string{"zlib-gabi", "zstd"} {
		path := filepath.Join(t.TempDir(), "packed")
		if !strings.Contains(tool(t, "objcopy", "--help"), method) {
			continue
		}
		tool(t, "objcopy", "--compress-debug-sections="+method, build(t, "-gz=none"), path)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, path).Section(".debug_info")
		if s.packing.method == notPacked {
			t.Fatal(".debug_info is not compressed")
		}
		size := s.Offset + 8 // ch_size
		for name, change := range map[string]func(b []byte){
			"huge":    func(b []byte) { binary.LittleEndian.PutUint64(b[size:], 1<<62) },
			"large":   func(b []byte) { binary.LittleEndian.PutUint64(b[size:], 1<<32) },
			"more":    func(b []byte) { binary.LittleEndian.PutUint64(b[size:], s.Size+1) },
			"less":    func(b []byte) { binary.LittleEndian.PutUint64(b[size:], s.Size-1) },
			"zero":    func(b []byte) { binary.LittleEndian.PutUint64(b[size:], 0) },
			"method":  func(b []byte) { b[s.Offset] = 77 },
			"stream":  func(b []byte) { b[s.Offset+chdrSize+20] ^= 0x55 },
			"garbage": func(b []byte) { copy(b[s.Offset+chdrSize:], bytes.Repeat([]byte{0xa5}, int(s.rawSize)-chdrSize)) },
		} {
			b := bytes.Clone(whole)
			change(b)
			f, err := FromBytes("lie", b)
			if err != nil {
				t.Fatal(err)
			}
			data, err := f.Section(".debug_info").Data()
			if err == nil {
				t.Errorf("%s, %s: %d bytes without an error", method, name, len(data))
			} else if !strings.Contains(err.Error(), "lie: .debug_info at 0x") {
				t.Errorf("%s, %s: the error %q does not say where", method, name, err)
			}
		}
	}
}

// TestShortCompressionHeader: eight bytes cannot hold an Elf64_Chdr.
func TestShortCompressionHeader(t *testing.T) {
	if p := headerPacking(make([]byte, 8)); p.method != badPacking {
		t.Errorf("method %d", p.method)
	}
	if p := headerPacking(binary.LittleEndian.AppendUint32(nil, uint32(elf.COMPRESS_ZLIB))); p.method != badPacking {
		t.Errorf("method %d", p.method)
	}
	if p := legacyPacking([]byte("ZLIB\x00\x00")); p.method != notPacked {
		t.Errorf("legacy method %d", p.method)
	}
}
