package agent

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// Memory is the target's memory, as image.Memory has it. It must be safe for
// concurrent use.
type Memory interface {
	// ReadMemory fills p from addr and returns how many bytes it filled. It
	// fills fewer than len(p) only with an error.
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
}

// source reads the agent's structures.
type source struct{ memory Memory }

// read fills p, and what names it in the error.
func (s source) read(what string, addr uint64, p []byte) error {
	n, err := s.memory.ReadMemory(evidence.Addr(addr), p)
	if err != nil {
		return fmt.Errorf("agent: %s at %#x: %w", what, addr, err)
	}
	if n < len(p) {
		return fmt.Errorf("agent: %s at %#x: only %d of %d bytes could be read", what, addr, n, len(p))
	}
	return nil
}

// readRaw fills one of the Raw types.
func readRaw[T any](s source, what string, addr uint64) (T, error) {
	var v T
	p := make([]byte, binary.Size(&v))
	if err := s.read(what, addr, p); err != nil {
		return v, err
	}
	if _, err := binary.Decode(p, binary.LittleEndian, &v); err != nil {
		return v, fmt.Errorf("agent: %s at %#x: %w", what, addr, err)
	}
	return v, nil
}
