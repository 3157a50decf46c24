package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// growStep is how much is decompressed at a time.
	growStep = 64 << 10
	// forgetStep is how much is decompressed between two calls of forget.
	forgetStep = 256 << 10
	// forgetSeam is at least a page.
	forgetSeam = 64 << 10
)

// growth is the part of a compressed section that was needed so far. The stream
// continues from its current position. Goroutines that need more take turns,
// step by step, so that one that needs little does not wait long.
type growth struct {
	section *Section

	mu   sync.Mutex
	turn sync.Cond // on mu
	busy bool      // a goroutine decompresses a step
	// produced is how much came out of the stream, filled how much of it is in
	// data, which has the claimed size.
	produced, filled uint64
	data             []byte
	ended            bool  // the stream ended where it should
	err              error // why it cannot continue
	spool            *spool

	// The fields below belong to the goroutine that set busy.

	packed []byte
	input  *bytes.Reader
	stream io.ReadCloser
	room   []byte // becomes data, without a spool
	// forgotten is how much of packed was released to the kernel.
	forgotten int
}

func newGrowth(s *Section) *growth {
	g := &growth{section: s}
	g.turn.L = &g.mu
	return g
}

// upTo returns at least the first n bytes. If it returns all, their end was
// checked.
func (g *growth) upTo(n uint64) ([]byte, error) {
	size := g.section.packing.size
	n = min(n, size)
	all := n == size
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil && (g.filled < n || all && !g.ended) {
		if g.busy || g.spool != nil && (g.produced == size || g.produced >= n) {
			g.turn.Wait()
			continue
		}
		g.grow()
	}
	// Pending writes must not outlive the file's Close.
	for g.err != nil && g.spool != nil && g.spool.running {
		g.turn.Wait()
	}
	if g.err != nil {
		return nil, g.err
	}
	return g.data[:g.filled:g.filled], nil
}

// grow decompresses a step. The caller holds mu, which is released meanwhile.
func (g *growth) grow() {
	g.busy = true
	from := g.produced
	g.mu.Unlock()
	chunk, err := g.guarded(from)
	g.mu.Lock()
	g.busy = false
	if err != nil {
		g.err = err
	} else if g.produced += uint64(len(chunk)); g.spool != nil {
		g.spool.addChunk(g, chunk)
	} else {
		g.filled, g.data = g.produced, g.room
		g.ended = g.filled == g.section.packing.size
	}
	g.turn.Broadcast()
}

// guarded runs a step, and turns its errors and faults into errors of the
// section.
func (g *growth) guarded(from uint64) (chunk []byte, err error) {
	s := g.section
	fault := s.file.guard(s.Name, func() {
		chunk, err = decode(func() ([]byte, error) { return g.step(from) })
	})
	if fault != nil {
		return nil, fault
	}
	return chunk, s.decompressionError(err)
}

func (s *Section) decompressionError(err error) error {
	var known *FormatError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &FormatError{File: s.file.path, Section: s.Name, Offset: s.packing.start, Reason: "decompression failed", Err: err}
}

// step decompresses the bytes that follow those produced. After the last it
// expects the end of the stream.
func (g *growth) step(from uint64) (chunk []byte, err error) {
	if g.stream == nil {
		if err := g.start(); err != nil {
			return nil, err
		}
	}
	size := g.section.packing.size
	n := min(growStep, size-from)
	if g.spool != nil {
		chunk = g.spool.buffer()[:n]
	} else {
		chunk = g.room[from : from+n]
	}
	if got, err := io.ReadFull(g.stream, chunk); n > 0 && err != nil {
		return nil, fmt.Errorf("at byte %d of %d: %w", from+uint64(got), size, noEOF(err))
	}
	end := from+n == size
	if consumed := len(g.packed) - g.input.Len(); end || (from+n)%forgetStep == 0 {
		// the page at the seam was not released the last time
		g.section.file.forget(g.packed[max(0, g.forgotten-forgetSeam):consumed])
		g.forgotten = consumed
	}
	if !end {
		return chunk, nil
	}
	defer g.stream.Close()
	if err := expectEnd(g.stream, size); err != nil || g.spool == nil {
		return chunk, err
	}
	return chunk, g.spool.finish(g.input)
}

// start opens the stream and allocates its output.
func (g *growth) start() error {
	s, p := g.section, g.section.packing
	stored, err := s.stored()
	if err != nil {
		return err
	}
	if p.method == badPacking {
		return s.errorAt(0, "unknown or incomplete compression header")
	}
	g.packed = stored[p.start:]
	if !plausible(p.size, uint64(len(g.packed))) {
		return s.errorAt(0, "%d compressed bytes claim to hold %d", len(g.packed), p.size)
	}
	g.input = bytes.NewReader(g.packed)
	var spooled *spool
	if p.size >= spillSize {
		// Without space on the disk it stays in memory.
		if file, err := newSpill(s.file, p.size); err == nil {
			spooled = newSpool(file)
		}
	}
	stream, err := p.unpacker(g.input, spooled)
	if err != nil {
		return err
	}
	if spooled != nil {
		g.mu.Lock()
		g.spool = spooled
		g.mu.Unlock()
	} else {
		g.room = newRoom(s.file, p.size)
	}
	g.stream = stream
	return nil
}
