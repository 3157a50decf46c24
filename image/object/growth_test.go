package object

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// noise is text of four letters without repetitions.
func noise(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, size+8)
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], random.Uint64()&0x0303030303030303|0x6060606060606060)
	}
	return b[:size]
}

// packedSection makes a section whose header claims a size for the decompressed bytes.
func packedSection(t *testing.T, plain []byte, claimed uint64) *Section {
	t.Helper()
	var stored bytes.Buffer
	for _, n := range []uint64{uint64(elf.COMPRESS_ZLIB), claimed, 1} {
		stored.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	level := zlib.BestSpeed
	if len(plain) >= spillSize {
		level = zlib.HuffmanOnly // for a test that ends soon
	}
	w, err := zlib.NewWriterLevel(&stored, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return storedSection(&contents{path: "made"}, stored.Bytes())
}

func storedSection(f *contents, stored []byte) *Section {
	f.data = stored
	s := &Section{Name: ".debug_info", Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), file: f, rawSize: uint64(len(stored))}
	s.findPacking()
	return s
}

// TestPrefixThenRest: a prefix is returned without decompressing the rest, and
// never beyond the decompressed bytes.
func TestPrefixThenRest(t *testing.T) {
	for name, size := range map[string]int{"memory": 3 << 20, "file": spillSize + 3} {
		t.Run(name, func(t *testing.T) {
			want := noise(size)
			s := packedSection(t, want, uint64(size))
			defer s.file.close()
			for _, n := range []int{0, 1, growStep - 1, growStep, growStep + 1, 2 << 20, 1} {
				got, err := s.Prefix(uint64(n))
				if err != nil || len(got) < n || cap(got) != len(got) || !bytes.HasPrefix(want, got) {
					t.Fatalf("prefix of %d: %d bytes, room for %d, error %v", n, len(got), cap(got), err)
				}
				if len(got) > 2<<20+growStep {
					t.Fatalf("prefix of %d: %d bytes were decompressed", n, len(got))
				}
			}
			if spilled := len(s.file.spilled) > 0; spilled != (name == "file") {
				t.Errorf("in a file: %v", spilled)
			}
			if got, err := s.Data(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, error %v", len(got), size, err)
			}
			if got, err := s.Prefix(1 << 40); err != nil || len(got) != size {
				t.Errorf("a prefix beyond the end: %d bytes, error %v", len(got), err)
			}
		})
	}
}

// TestPrefixConcurrently: readers of different prefixes see the same bytes.
func TestPrefixConcurrently(t *testing.T) {
	want := noise(2 << 20)
	s := packedSection(t, want, uint64(len(want)))
	var wait sync.WaitGroup
	for reader := range 8 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(reader)))
			for n := uint64(0); n < s.Size; n += random.Uint64N(300 << 10) {
				got, err := s.Prefix(n)
				if err != nil || uint64(len(got)) < n || !bytes.HasPrefix(want, got) {
					t.Errorf("prefix of %d: %d bytes, error %v", n, len(got), err)
					return
				}
			}
			if got, err := s.Data(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, error %v", len(got), err)
			}
		})
	}
	wait.Wait()
}

// TestPrefixOfDamage: the bytes before the damage are returned until the damage
// is found.
func TestPrefixOfDamage(t *testing.T) {
	for _, size := range []int{3 << 20, spillSize + 100} {
		want := noise(size)
		whole := packedSection(t, want, uint64(size)).file.data
		for name, change := range map[string]func(b []byte) []byte{
			"cut": func(b []byte) []byte { return b[:len(b)/2] },
			"garbage": func(b []byte) []byte {
				copy(b[len(b)/2:], bytes.Repeat([]byte{0xff}, len(b)/4))
				return b
			},
			"checksum":     func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
			"cut checksum": func(b []byte) []byte { return b[:len(b)-1] },
		} {
			s := storedSection(&contents{path: "made"}, change(bytes.Clone(whole)))
			got, err := s.Prefix(1 << 20)
			if err != nil || len(got) < 1<<20 || !bytes.HasPrefix(want, got) {
				t.Errorf("%s: prefix: %d bytes, error %v", name, len(got), err)
			}
			for _, n := range []uint64{s.Size, s.Size, 1 << 20, 0} {
				if got, err := s.Prefix(n); err == nil || got != nil || !strings.Contains(err.Error(), "made: .debug_info at 0x18") {
					t.Errorf("%s: %d bytes of %d, error %v", name, len(got), n, err)
				}
			}
			s.file.close()
		}
	}
}

// TestFullDisk: if the file cannot grow, memory holds the rest.
func TestFullDisk(t *testing.T) {
	want := noise(spillSize + 1)
	s := packedSection(t, want, uint64(len(want)))
	defer s.file.close()
	early, err := s.Prefix(3 << 20)
	if err != nil {
		t.Fatal(err)
	}
	s.file.spilled[0].file.Close()
	got, err := s.Data()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
	if s.growth.spool.memory == nil {
		t.Error("the file took it all")
	}
	if !bytes.HasPrefix(want, early) {
		t.Error("the part from before has changed")
	}
}

// TestPrefixOfLies: a wrong claimed size fails where claim and stream differ.
func TestPrefixOfLies(t *testing.T) {
	want := noise(1 << 20)
	for _, claimed := range []uint64{0, 1<<20 - 1, 1<<20 + 1, 40 << 20, 1 << 50} {
		s := packedSection(t, want, claimed)
		got, err := s.Prefix(1 << 10)
		if claimed > 1<<40 {
			if err == nil {
				t.Errorf("%d claimed: a prefix of %d bytes", claimed, len(got))
			}
		} else if claimed > 0 && (err != nil || !bytes.HasPrefix(want, got)) {
			t.Errorf("%d claimed: prefix: %d bytes, error %v", claimed, len(got), err)
		}
		if got, err := s.Data(); err == nil {
			t.Errorf("%d claimed: %d bytes without an error", claimed, len(got))
		}
		s.file.close()
	}
}
