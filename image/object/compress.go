package object

import (
	"bytes"
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

// A claimed size is accepted up to freeSize, and above it only up to maxRatio
// times the stored size, so that a small hostile file cannot claim all memory.
// Debug sections compress three- to twentyfold.
const (
	freeSize = 64 << 20
	maxRatio = 64
)

func plausible(claimed, stored uint64) bool {
	return claimed <= freeSize || claimed/maxRatio <= stored
}

// decode runs a decompressor, and turns its panics on hostile bytes into
// errors.
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

// unpacker opens the stream of a section's decompressed bytes; w is nil for
// bytes that stay in memory.
func (p packing) unpacker(packed *bytes.Reader, w *spool) (io.ReadCloser, error) {
	switch {
	case p.method == zlibPacked && w != nil:
		return w.deflated(packed)
	case p.method == zlibPacked:
		return zlib.NewReader(packed)
	}
	// The window must not exceed the section's maximum size; the decoder's
	// minimum is one block.
	r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(max(p.size, 1<<20)), zstd.WithDecoderMaxWindow(1<<30))
	if err != nil {
		return nil, err
	}
	return r.IOReadCloser(), nil
}

// readExactly reads size bytes and the end.
func readExactly(r io.Reader, size uint64) ([]byte, error) {
	data := make([]byte, size)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("at byte %d of %d: %w", n, size, noEOF(err))
	}
	return data, expectEnd(r, size)
}

// expectEnd reads to the end, where decompressors compare their checksums.
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
