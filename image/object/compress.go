package object

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"diagnose/internal/inflate"
)

// packing is how a section is compressed.
type packing struct {
	method packingMethod
	size   uint64 // decompressed, as claimed
	start  uint64 // of the compressed stream in the stored section
}

type packingMethod uint8

const (
	notPacked packingMethod = iota
	zlibPacked
	zstdPacked
	badPacking // the header is cut off or names an unknown method
)

// A claimed size is believed up to freeSize; above it only up to
// maxRatio times what is stored, so that a small hostile file cannot ask for
// all memory. Debug sections compress three- to twentyfold.
const (
	freeSize = 64 << 20
	maxRatio = 64
)

func plausible(claimed, stored uint64) bool {
	return claimed <= freeSize || claimed/maxRatio <= stored
}

func (s *Section) decompress() (data []byte, err error) {
	stored, err := s.stored()
	if err != nil {
		return nil, err
	}
	p := s.packing
	if p.method == badPacking {
		return nil, s.errorAt(0, "unknown or incomplete compression header")
	}
	packed := stored[p.start:]
	if !plausible(p.size, uint64(len(packed))) {
		return nil, s.errorAt(0, "%d compressed bytes claim to hold %d", len(packed), p.size)
	}
	fault := s.file.guard(s.Name, func() {
		data, err = decode(func() ([]byte, error) {
			if p.method == zstdPacked {
				return unzstd(packed, p.size)
			}
			return unzlib(packed, p.size, s.file.forget)
		})
	})
	if fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, &FormatError{File: s.file.path, Section: s.Name, Offset: p.start, Reason: "decompression failed", Err: err}
	}
	return data, nil
}

// decode runs a decompressor, whose panic on hostile bytes becomes an error.
func decode(run func() ([]byte, error)) (data []byte, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			panic(p) // a fault of the mapping is guard's
		default:
			data, err = nil, fmt.Errorf("the decompressor failed: %v", p)
		}
	}()
	return run()
}

// unzlib tells forget what of the packed bytes it is done with, so that they
// and the result are not both in memory at the end.
func unzlib(packed []byte, size uint64, forget func([]byte)) ([]byte, error) {
	data := make([]byte, size)
	err := inflate.Zlib(data, packed, func(n int) { forget(packed[:n]) })
	if err != nil {
		return nil, err
	}
	forget(packed)
	return data, nil
}

// forget lets the kernel take back the pages within b, a part of the file;
// reading them again brings them back.
func (f *File) forget(b []byte) {
	if !f.mapped || len(b) == 0 {
		return
	}
	page := uintptr(os.Getpagesize())
	start := uintptr(unsafe.Pointer(&b[0]))
	skip := (page - start%page) % page
	if uintptr(len(b)) < skip+page {
		return
	}
	whole := b[skip:]
	// a refusal costs memory, nothing else
	_ = unix.Madvise(whole[:uintptr(len(whole))/page*page], unix.MADV_DONTNEED)
}

// readExactly reads size bytes and the end, where decompressors compare
// their checksums.
func readExactly(r io.Reader, size uint64) ([]byte, error) {
	data := make([]byte, size)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("at byte %d of %d: %w", n, size, noEOF(err))
	}
	var extra [1]byte
	n, err := io.ReadFull(r, extra[:])
	if n > 0 {
		return nil, fmt.Errorf("more than the %d bytes claimed", size)
	}
	if err != io.EOF {
		return nil, err
	}
	return data, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func unzstd(packed []byte, size uint64) ([]byte, error) {
	// The window must not exceed what the section may be; the decoder's least
	// memory is one block.
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(max(size, 1<<20)), zstd.WithDecoderMaxWindow(1<<30))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := r.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	if uint64(len(data)) != size {
		return nil, fmt.Errorf("%d bytes instead of the %d claimed", len(data), size)
	}
	return data, nil
}
