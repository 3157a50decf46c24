package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/restic/chunker"
)

// cutting is a way to cut a stream into chunks.
type cutting struct {
	name string
	cut  func(in io.Reader, chunk func([]byte)) error
}

func fixed(size int) cutting {
	return cutting{fmt.Sprintf("fixed/%dK", size>>10), func(in io.Reader, chunk func([]byte)) error {
		b := make([]byte, size)
		for {
			n, err := io.ReadFull(in, b)
			if n > 0 {
				chunk(b[:n])
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}}
}

func byContent(bits int) cutting {
	return cutting{fmt.Sprintf("content/%dK", 1<<bits>>10), func(in io.Reader, chunk func([]byte)) error {
		c := chunker.NewWithBoundaries(in, polynomial, 1<<bits/4, mostChunk)
		c.SetAverageBits(bits)
		b := make([]byte, mostChunk)
		for {
			part, err := c.Next(b)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			chunk(part.Data)
		}
	}}
}

// BenchmarkDedup measures what of recordings is sent one after the other, by different ways to cut
// them. DIAGNOSE_RECORDINGS has their directories, separated by colons: the first one and the
// others are told apart.
func BenchmarkDedup(b *testing.B) {
	dirs := filepath.SplitList(os.Getenv("DIAGNOSE_RECORDINGS"))
	if len(dirs) < 2 {
		b.Skip("DIAGNOSE_RECORDINGS names no two recordings")
	}
	for _, way := range []cutting{fixed(64 << 10), fixed(256 << 10), fixed(mostChunk), byContent(16), byContent(17), byContent(18), byContent(19)} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				seen := map[digest]bool{}
				var sent [2]int
				for i, dir := range dirs {
					for _, data := range dataOf(b, dir) {
						if err := way.cut(data, func(c []byte) {
							if sum := sha256.Sum256(c); !seen[sum] {
								seen[sum] = true
								sent[min(i, 1)] += len(compressor().EncodeAll(c, nil))
							}
						}); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(sent[0])/1e6, "MB-first")
				b.ReportMetric(float64(sent[1])/1e6/float64(len(dirs)-1), "MB-other")
				b.ReportMetric(float64(len(seen)), "chunks")
			}
		})
	}
}

// dataOf are the files of a directory, without their holes.
func dataOf(b *testing.B, dir string) (list []io.Reader) {
	b.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { root.Close() })
	var names []string
	if err := listFiles(root, ".", &names); err != nil {
		b.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		f, err := root.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { f.Close() })
		info, err := f.Stat()
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, &extentReader{ctx: b.Context(), file: f, size: info.Size(), sum: sha256.New()})
	}
	return list
}

// BenchmarkTree puts trees of 32 MiB that the engine does not have, and gets them.
func BenchmarkTree(b *testing.B) {
	s, err := StartEmbedded(b.Context(), filepath.Join(b.TempDir(), "engine"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e, err := s.Connect(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	const size = 32 << 20
	var references []string
	b.Run("put", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			b.StopTimer()
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), noise(uint64(len(references)), size), 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			reference, err := e.PutTree(b.Context(), dir, nil)
			if err != nil {
				b.Fatal(err)
			}
			references = append(references, reference)
		}
	})
	b.Run("get", func(b *testing.B) {
		b.SetBytes(size)
		for i := range b.N {
			if err := e.GetTree(b.Context(), references[i%len(references)], filepath.Join(b.TempDir(), fmt.Sprint(i)), Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
