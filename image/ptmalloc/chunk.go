package ptmalloc

import (
	"encoding/binary"

	"diagnose/evidence"
)

// The flags in the low bits of a chunk's size (malloc/malloc.c).
const (
	prevInUse  = 1
	isMmapped  = 2
	nonMain    = 4
	chunkFlags = 7
	// leastChunk is MINSIZE, headerSize what precedes the memory that malloc returns, of
	// which the first word belongs to the chunk before while that is in use.
	leastChunk = 32
	headerSize = 16
	fencepost  = 16
)

// Chunk is a piece of a heap.
type Chunk struct {
	// Addr is that of its header.
	Addr evidence.Addr
	// PrevSize and SizeWord are the header as it is. Size is that of the chunk with its
	// header, in bytes.
	PrevSize, SizeWord uint64
	Size               uint64
	// Free says in which list of free chunks it is; the zero value: it is in none.
	Free Free
	// Top: it is the rest at the end of an arena. Mapped: malloc mapped it for itself.
	Top, Mapped bool
}

// User is the address that malloc returned for it.
func (c *Chunk) User() evidence.Addr { return c.Addr + headerSize }

// UserSize is the memory that the program may use, in bytes: what it asked for, rounded up.
func (c *Chunk) UserSize() uint64 {
	switch {
	case c.Size < headerSize:
		return 0
	case c.Mapped:
		return c.Size - headerSize
	}
	return c.Size - word
}

// End is the header of the next chunk.
func (c *Chunk) End() evidence.Addr { return c.Addr + evidence.Addr(c.Size) }

// UserEnd is the end of the memory that the program may use.
func (c *Chunk) UserEnd() evidence.Addr { return c.User() + evidence.Addr(c.UserSize()) }

// InUse reports whether the chunk is an object of the program.
func (c *Chunk) InUse() bool { return c.Free.List == "" && !c.Top }

func parseChunk(at evidence.Addr, header []byte) Chunk {
	c := Chunk{Addr: at, PrevSize: binary.LittleEndian.Uint64(header), SizeWord: binary.LittleEndian.Uint64(header[word:])}
	c.Size = c.SizeWord &^ chunkFlags
	return c
}

func (h *Heap) chunkAt(at evidence.Addr) (Chunk, error) {
	header := make([]byte, headerSize)
	if _, err := h.cache.ReadMemory(at, header); err != nil {
		return Chunk{}, err
	}
	c := parseChunk(at, header)
	c.Free = h.free[at]
	return c, nil
}
