package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
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
			return p.unpack(s.file, packed)
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

// unpacker opens the stream of a section's decompressed bytes.
func (p packing) unpacker(packed io.Reader) (io.ReadCloser, error) {
	if p.method == zlibPacked {
		return zlib.NewReader(packed)
	}
	// The window must not exceed what the section may be; the decoder's least
	// memory is one block.
	r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(max(p.size, 1<<20)), zstd.WithDecoderMaxWindow(1<<30))
	if err != nil {
		return nil, err
	}
	return r.IOReadCloser(), nil
}

// unpack decompresses a section whole: a large one into a file without a
// name, of which only the pages that are looked at take memory.
func (p packing) unpack(f *File, packed []byte) ([]byte, error) {
	if p.size >= spillSize {
		data, err := p.spill(f, packed)
		var noFile *spillError
		if !errors.As(err, &noFile) {
			return data, err
		}
		// Without room on the disk memory has to do.
	}
	r, err := p.unpacker(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readExactly(r, p.size)
}

// readExactly reads size bytes and the end, where decompressors compare
// their checksums.
func readExactly(r io.Reader, size uint64) ([]byte, error) {
	data := make([]byte, size)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("at byte %d of %d: %w", n, size, noEOF(err))
	}
	return data, expectEnd(r, size)
}

func expectEnd(r io.Reader, size uint64) error {
	var extra [1]byte
	n, err := io.ReadFull(r, extra[:])
	switch {
	case n > 0:
		return fmt.Errorf("more than the %d bytes claimed", size)
	case err != io.EOF:
		return err
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
