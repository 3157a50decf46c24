package object

import (
	"encoding/binary"
	"errors"
	"hash"
	"hash/adler32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

// spool writes decompressed chunks to their file, and adds up their checksum,
// while the next step is decompressed.
type spool struct {
	file *spill
	free chan []byte // buffers of growStep

	// The fields below are guarded by the growth's mu.

	running bool
	pending [][]byte

	// The fields below belong to the writer.

	memory []byte // in place of a file that could not be written
	sum    hash.Hash32

	// bare is set for a stream that does not compare its checksum itself; want
	// is that checksum, known when the last chunk is added.
	bare bool
	want uint32
}

func newSpool(file *spill) *spool {
	const buffers = 4
	w := &spool{file: file, free: make(chan []byte, buffers), sum: adler32.New()}
	for range buffers {
		w.free <- make([]byte, growStep)
	}
	return w
}

// buffer returns a free buffer; it waits for the writer if there is none.
func (w *spool) buffer() []byte { return <-w.free }

// addChunk hands a chunk to the writer. The caller holds g's mu.
func (w *spool) addChunk(g *growth, chunk []byte) {
	w.pending = append(w.pending, chunk)
	if !w.running {
		w.running = true
		go w.write(g)
	}
}

// write stores pending chunks until none is left.
func (w *spool) write(g *growth) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(w.pending) > 0 {
		chunk := w.pending[0]
		w.pending = w.pending[1:]
		from, size := g.filled, g.section.packing.size
		g.mu.Unlock()
		data := w.put(chunk, from, size)
		var err error
		last := from+uint64(len(chunk)) == size
		if last {
			err = g.section.decompressionError(w.compare())
		}
		w.free <- chunk[:growStep]
		g.mu.Lock()
		g.data, g.filled = data, from+uint64(len(chunk))
		if g.ended = last && err == nil; err != nil {
			g.err = err
		}
		g.turn.Broadcast()
	}
	w.running = false
	g.turn.Broadcast()
}

// put writes a chunk at its offset and returns the section as decompressed so
// far.
func (w *spool) put(chunk []byte, from, size uint64) []byte {
	w.sum.Write(chunk)
	if w.memory == nil {
		if _, err := w.file.file.Write(chunk); err == nil {
			return w.file.data
		}
		w.memory = make([]byte, size)
		copy(w.memory, w.file.data[:from])
	}
	copy(w.memory[from:], chunk)
	return w.memory
}

// compare compares the checksum of all chunks with the stream's.
func (w *spool) compare() error {
	if w.bare && w.want != w.sum.Sum32() {
		return zlib.ErrChecksum
	}
	return nil
}

var errZlibHeader = errors.New("no header of a zlib stream")

// deflated opens the stream inside a zlib stream, whose checksum (RFC 1950
// section 2.2) it leaves to the spool: adding that up takes a tenth of the time.
func (w *spool) deflated(packed io.Reader) (io.ReadCloser, error) {
	const deflate, maxWindow, dictionary = 8, 7, 0x20
	var header [2]byte
	if _, err := io.ReadFull(packed, header[:]); err != nil {
		return nil, noEOF(err)
	}
	if header[0]&0x0f != deflate || header[0]>>4 > maxWindow || header[1]&dictionary != 0 || binary.BigEndian.Uint16(header[:])%31 != 0 {
		return nil, errZlibHeader
	}
	w.bare = true
	return flate.NewReader(packed), nil
}

// finish reads the checksum after the stream.
func (w *spool) finish(packed io.Reader) error {
	if !w.bare {
		return nil
	}
	var sum [4]byte
	_, err := io.ReadFull(packed, sum[:])
	w.want = binary.BigEndian.Uint32(sum[:])
	return noEOF(err)
}
