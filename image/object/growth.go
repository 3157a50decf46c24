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
	growStep = 128 << 10
	// forgetStep is how much is decompressed between two calls of forget.
	forgetStep = 1 << 20
	// forgetSeam is at least a page.
	forgetSeam = 64 << 10
)

// growth is a compressed section's contents as far as they are needed. The
// stream goes on from where it stands; those who need more take turns at it,
// step by step, so that one who needs little does not wait for much.
type growth struct {
	mu     sync.Mutex
	turn   sync.Cond // on mu
	busy   bool      // somebody decompresses a step
	filled uint64    // how much of data is there
	ended  bool      // the stream ended where it should
	err    error     // why it cannot go on
	data   []byte    // of the claimed size

	// What follows belongs to whoever made busy true.

	room    []byte // what data is to be
	file    *spill // behind room; nil for memory
	scratch []byte // on the way to file
	packed  []byte
	input   *bytes.Reader
	stream  io.ReadCloser
	// forgotten is how much of packed was given back to the kernel.
	forgotten int
}

func newGrowth() *growth {
	g := &growth{}
	g.turn.L = &g.mu
	return g
}

// upTo returns the first n bytes or more; all are checked for their end.
func (g *growth) upTo(s *Section, n uint64) ([]byte, error) {
	n = min(n, s.packing.size)
	all := n == s.packing.size
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil && (g.filled < n || all && !g.ended) {
		if g.busy {
			g.turn.Wait()
			continue
		}
		g.busy = true
		from := g.filled
		g.mu.Unlock()
		filled, err := g.guarded(s, from)
		g.mu.Lock()
		g.busy, g.filled, g.err, g.data = false, filled, err, g.room
		g.ended = err == nil && filled == s.packing.size
		g.turn.Broadcast()
	}
	if g.err != nil {
		return nil, g.err
	}
	return g.data[:g.filled:g.filled], nil
}

// guarded runs a step, whose errors and faults become the section's.
func (g *growth) guarded(s *Section, from uint64) (filled uint64, err error) {
	filled = from
	fault := s.file.guard(s.Name, func() {
		_, err = decode(func() ([]byte, error) {
			n, err := g.step(s, from)
			filled += n
			return nil, err
		})
	})
	if fault != nil {
		return filled, fault
	}
	var known *FormatError
	if err != nil && !errors.As(err, &known) {
		err = &FormatError{File: s.file.path, Section: s.Name, Offset: s.packing.start, Reason: "decompression failed", Err: err}
	}
	return filled, err
}

// step decompresses what follows on the bytes that are there, and expects the
// end of the stream behind the last.
func (g *growth) step(s *Section, from uint64) (n uint64, err error) {
	if g.stream == nil {
		if err := g.start(s); err != nil {
			return 0, err
		}
	}
	size := s.packing.size
	if n = min(growStep, size-from); n > 0 {
		if err := g.fill(from, n, size); err != nil {
			return 0, err
		}
	}
	end := from+n == size
	if consumed := len(g.packed) - g.input.Len(); end || (from+n)%forgetStep == 0 {
		// the page at the seam was not given back the last time
		s.file.forget(g.packed[max(0, g.forgotten-forgetSeam):consumed])
		g.forgotten = consumed
	}
	if !end {
		return n, nil
	}
	defer g.stream.Close()
	return n, expectEnd(g.stream, size)
}

// start opens the stream and makes room for what comes out of it.
func (g *growth) start(s *Section) error {
	stored, err := s.stored()
	if err != nil {
		return err
	}
	p := s.packing
	if p.method == badPacking {
		return s.errorAt(0, "unknown or incomplete compression header")
	}
	g.packed = stored[p.start:]
	if !plausible(p.size, uint64(len(g.packed))) {
		return s.errorAt(0, "%d compressed bytes claim to hold %d", len(g.packed), p.size)
	}
	g.input = bytes.NewReader(g.packed)
	stream, err := p.unpacker(g.input)
	if err != nil {
		return err
	}
	if p.size >= spillSize {
		// Without room on the disk memory has to do.
		g.file, _ = newSpill(s.file, p.size)
	}
	if g.file != nil {
		g.room, g.scratch = g.file.data, make([]byte, growStep)
	} else {
		g.room = make([]byte, p.size)
	}
	g.stream = stream
	return nil
}

// fill puts the next n bytes of the stream in their place.
func (g *growth) fill(from, n, size uint64) error {
	place := g.room[from : from+n]
	if g.file != nil {
		place = g.scratch[:n]
	}
	if got, err := io.ReadFull(g.stream, place); err != nil {
		return fmt.Errorf("at byte %d of %d: %w", from+uint64(got), size, noEOF(err))
	}
	if g.file == nil {
		return nil
	}
	if _, err := g.file.file.Write(place); err != nil {
		memory := make([]byte, size)
		copy(memory, g.room[:from])
		copy(memory[from:], place)
		g.room, g.file = memory, nil
	}
	return nil
}
